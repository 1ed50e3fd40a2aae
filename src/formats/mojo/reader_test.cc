// formats/mojo/reader_test.cc: files of each version, cut and damaged ones.
#include "formats/mojo/reader.h"

#include <gtest/gtest.h>

#include "formats/mojo/testing.h"
#include "profile/testing.h"

namespace plimsoll::formats::mojo {
namespace {

using profile::testing::stacks_of;
using testing::draw_file;

profile::Profile read_drawing(std::string_view drawing) {
  Result<profile::Profile> read_back = read(draw_file(drawing));
  EXPECT_TRUE(read_back.ok()) << read_back.error().message;
  return read_back.ok() ? read_back.take() : profile::Profile{};
}

constexpr std::string_view kFull = R"(
  version 3
  meta austin 3.7.0
  meta interval 1000
  meta mode full
  meta python 3.11.7
  stack 12 0 1f4
  string 1000000 tea.py
  string 2000 pour
  frame 7000000000 1000000 2000 42 42 5 9
  ref 7000000000
  time 1500
  memory -131
  stack 12 0 1f4
  ref 7000000000
  event 7
  event 4
  time 500
  event 8
  memory 0
  stack 13 0 1f5
  kernel do_syscall_64
  time 250
  memory 4096
  meta duration 2500
)";

TEST(Mojo, TellsStacksTimesAndWhoWasIdle) {
  // GIVEN a file in full mode WHEN it is read THEN frames have lines and columns, and idle time is none of a CPU's
  const profile::Profile profile = read_drawing(kFull);
  EXPECT_EQ(stacks_of(profile), (std::vector<std::string>{"pour", "pour;[invalid frame];[gc]", "do_syscall_64"}));
  EXPECT_EQ(profile.samples.weight_ns, (std::vector<std::int64_t>{1'500'000, 500'000, 250'000}));
  EXPECT_EQ(profile.samples.activity,
            (std::vector<Activity>{Activity::kRunning, Activity::kOther, Activity::kRunning}));
  const profile::Frame& pour = profile.frames[profile.stacks[profile.samples.stack[0]].frame];
  EXPECT_EQ(pour.line, 42U);
  EXPECT_EQ(pour.column, 5U);
  ASSERT_EQ(profile.threads.size(), 2U);
  EXPECT_EQ(profile.threads[1].os_tid, 0x1f5);
  EXPECT_EQ(profile.processes[1].pid, 13);
  EXPECT_EQ(profile.meta_value("format"), "mojo 3");
  EXPECT_EQ(profile.meta_value("rate_hz"), "1000");
  EXPECT_EQ(profile.end_ns, 2'500'000);
  EXPECT_TRUE(profile.complete);
}

TEST(Mojo, OfTheFirstVersionsHasFewerNumbers) {
  // GIVEN files of versions 1 and 2 WHEN they are read THEN stacks have no interpreter, and frames of 1 no columns
  constexpr std::string_view kEvents = "stack 12 1f4\n string 5 tea.py\n string 6 pour\n";
  for (const std::string version : {"1", "2"}) {
    const profile::Profile profile = read_drawing("version " + version + "\nmeta mode wall\n" + std::string(kEvents) +
                                                  (version == "1" ? "frame 7 5 6 3\n" : "frame 7 5 6 3 3 1 2\n") +
                                                  "ref 7\ntime 10\nmeta duration 1");
    EXPECT_EQ(stacks_of(profile), (std::vector<std::string>{"pour"}));
    EXPECT_EQ(profile.frames[profile.stacks[profile.samples.stack[0]].frame].line, 3U);
  }
}

TEST(Mojo, RepeatsAStackWithoutTheNativeCodeOnIt) {
  // GIVEN a file of version 4 with a repeated stack, named threads and a suspended task WHEN it is read THEN the stack
  // is whole, and the task is on nobody's
  const profile::Profile profile = read_drawing(R"(
    version 4
    meta mode wall
    stack 1 0 MainThread
    string 2 tea.py
    string 3 main
    string 4 libc.so
    string 5 read
    frame 10 2 3 1 0 0 0
    frame 11 4 5 0 0 0 0
    waiter 100 200
    task 100 3
    ref 10
    ref 10
    time 99999
    ref 10
    ref 11
    time 1000
    stack 1 0 MainThread
    event 13
    time 2000
    stack 1 0 MainThread
    event 13
    ref 11
    ref 99
    time 3000
    meta duration 6000
  )");
  EXPECT_EQ(stacks_of(profile), (std::vector<std::string>{"main;read", "main", "main;read;[unknown frame]"}));
  EXPECT_EQ(profile.sampled_ns(), 6'000'000);
  EXPECT_EQ(profile.threads[0].name, "MainThread");
}

TEST(Mojo, GivesNativeCodeNoNameByItsAddress) {
  // GIVEN native frames at two addresses of one function WHEN they are read THEN it is one function
  const profile::Profile profile = read_drawing(R"(
    version 3
    stack 1 0 1
    string 2 native@7f01
    string 3 native@7f02
    string 4 memcpy
    frame 10 2 4 17 0 0 0
    frame 11 3 4 18 0 0 0
    ref 10
    ref 11
    time 5
  )");
  EXPECT_EQ(profile.functions.size(), 1U);
  EXPECT_EQ(profile.functions.rows()[0].kind, profile::FunctionKind::kNative);
}

TEST(Mojo, ThatIsCutIsReadUpToThere) {
  // GIVEN a file cut at any byte WHEN it is read THEN it has the samples that are whole, and is not complete
  const std::string bytes = draw_file(kFull);
  std::size_t most = 0;
  for (std::size_t size = 4; size < bytes.size(); ++size) {
    const Result<profile::Profile> profile = read(std::string_view(bytes).substr(0, size));
    ASSERT_TRUE(profile.ok()) << size;
    EXPECT_FALSE(profile.value().complete) << size;
    const std::vector<std::string> stacks = stacks_of(profile.value());
    const std::vector<std::string> all{"pour", "pour;[invalid frame];[gc]", "do_syscall_64"};
    EXPECT_TRUE(std::equal(stacks.begin(), stacks.end(), all.begin())) << size;
    EXPECT_GE(stacks.size(), most);
    most = stacks.size();
  }
  EXPECT_EQ(most, 3U);
}

TEST(Mojo, ThatIsDamagedSaysWhere) {
  // GIVEN bytes that are no event, or a number that never ends WHEN they are read THEN the profile tells the place
  for (const std::string_view junk : {"bytes 63", "bytes 00", "bytes 05 ff ff ff ff ff ff ff ff ff ff ff 01"}) {
    const profile::Profile profile = read_drawing("version 3\nstack 1 0 1\ntime 5\n" + std::string(junk));
    EXPECT_EQ(profile.samples.size(), 1U);
    EXPECT_FALSE(profile.complete);
    EXPECT_EQ(profile.meta_value("damage"), "bytes that make no sense from byte 11 on");
  }
}

TEST(Mojo, OfMemoryOrOfTheFutureIsRefused) {
  // GIVEN a profile of memory, and a version to come WHEN they are read THEN the errors say so
  const Result<profile::Profile> memory = read(draw_file("version 3\nmeta mode memory\nstack 1 0 1\nmemory 5"));
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().message, "a MOJO file of memory: only profiles of time can be read");
  EXPECT_EQ(read(draw_file("version 5")).error().kind, ErrorKind::kUnsupported);
  EXPECT_EQ(read("MO").error().kind, ErrorKind::kBadInput);
  EXPECT_FALSE(is_mojo("MOJito;bar 5\n"));
}

}  // namespace
}  // namespace plimsoll::formats::mojo
