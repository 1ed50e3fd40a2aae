// formats/collapsed/austin_test.cc: Austin's text, as its versions write it.
#include <gtest/gtest.h>

#include "formats/collapsed/reader.h"
#include "profile/testing.h"

namespace plimsoll::formats::collapsed {
namespace {

using profile::testing::stacks_of;

TEST(AustinText, OfFullModeTellsWhoWasIdle) {
  // GIVEN lines with time, idle or not, and memory WHEN they are read THEN the time counts, and idle time as a wait
  const Result<profile::Profile> read_back = read(
      "# austin: 3.7.0\n# interval: 100\n# mode: full\n# python: 3.11.7\n\n"
      "P12;T0:34;/srv/app.py:main:3;/srv/app.py:work:7 1500,0,4096\n"
      "P12;T0:35;/srv/app.py:main:3;:GC: 500,1,-4096\n"
      "P12;T0:34;:INVALID:;native@7f12:memcpy:5 7,0,0\n"
      "P12;T0:34 3,1,0\n"
      "P12;T0:34;broken 3,1\n\n# duration: 3000\n");
  ASSERT_TRUE(read_back.ok()) << read_back.error().message;
  const profile::Profile& profile = read_back.value();
  EXPECT_EQ(stacks_of(profile), (std::vector<std::string>{"main;work", "main;[gc]", "[invalid frame];memcpy", ""}));
  EXPECT_EQ(profile.samples.weight_ns, (std::vector<std::int64_t>{1'500'000, 500'000, 7'000, 3'000}));
  EXPECT_EQ(profile.samples.activity[1], Activity::kOther);
  EXPECT_EQ(profile.meta_value("engine"), "austin 3.7.0");
  EXPECT_EQ(profile.meta_value("rate_hz"), "10000");
  EXPECT_EQ(profile.end_ns, 3'000'000);
  ASSERT_EQ(profile.threads.size(), 2U);
  EXPECT_EQ(profile.threads[1].os_tid, 35);
  ASSERT_EQ(profile.drops.size(), 1U);
}

TEST(AustinText, MayNameThreads) {
  // GIVEN threads by name, as converted from newer binary files WHEN they are read THEN those are their names
  const Result<profile::Profile> profile = read("# austin: 4.0.0\n# mode: cpu\nP1;T0:Main Thread;a.py:f:1 5\n");
  ASSERT_TRUE(profile.ok());
  EXPECT_EQ(profile.value().threads[0].name, "Main Thread");
  EXPECT_EQ(profile.value().meta_value("mode"), "cpu");
}

TEST(AustinText, OfMemoryIsNotTakenForTime) {
  // GIVEN a profile of bytes WHEN it is read THEN it is refused
  const Result<profile::Profile> profile = read("# austin: 3.7.0\n# mode: memory\nP1;T1;a.py:f:1 4096\n");
  ASSERT_FALSE(profile.ok());
  EXPECT_EQ(profile.error().kind, ErrorKind::kUnsupported);
  // but in a file of another tool a comment is a comment
  EXPECT_TRUE(read("# mode: memory\nmain;work 4096\n").ok());
}

TEST(SamplingText, OfCPythonHasThreadsAndFramesLikeAustins) {
  // GIVEN what profiling.sampling --collapsed writes WHEN it is read THEN threads are no functions, and lines have
  // files
  const Result<profile::Profile> read_back = read(
      "tid:24985;<frozen runpy>:_run_code:87;work.py:main:9 690\n"
      "tid:24986;work.py:main:8 20\n");
  ASSERT_TRUE(read_back.ok()) << read_back.error().message;
  const profile::Profile& profile = read_back.value();
  EXPECT_EQ(stacks_of(profile), (std::vector<std::string>{"_run_code;main", "main"}));
  ASSERT_EQ(profile.threads.size(), 2U);
  EXPECT_EQ(profile.threads[1].os_tid, 24986);
  const profile::Frame& main = profile.frames[profile.stacks[profile.samples.stack[1]].frame];
  EXPECT_EQ(main.line, 8U);
  EXPECT_EQ(profile.strings[profile.functions[main.function].file], "work.py");
  // AND a stack of another tool may have a function of such a name
  EXPECT_EQ(stacks_of(read("tid:x;main 5\n").value()), (std::vector<std::string>{"tid:x;main"}));
}

}  // namespace
}  // namespace plimsoll::formats::collapsed
