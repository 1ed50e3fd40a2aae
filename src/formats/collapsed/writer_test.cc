// formats/collapsed/writer_test.cc: drawn profiles as collapsed stacks.
#include "formats/collapsed/writer.h"

#include <gtest/gtest.h>

#include "profile/testing.h"

namespace plimsoll::formats::collapsed {
namespace {

using profile::testing::draw_profile;

TEST(Collapsed, WritesOneLinePerStackInMicroseconds) {
  // GIVEN samples of two stacks WHEN they are written THEN each stack has a line with the sum of its CPU time
  EXPECT_EQ(write(draw_profile(R"(
              main(app.py:1);work(app.py:7)   1.5
              main(app.py:1)                  2
              main(app.py:1);work(app.py:7)   1
            )")),
            "main (app.py:1);work (app.py:7) 2500\n"
            "main (app.py:1) 2000\n");
}

TEST(Collapsed, CarriesRoundingErrorsSoThatTheSumIsExact) {
  // GIVEN 1000 stacks of 1.4 microseconds
  std::string drawing;
  for (int i = 0; i < 1000; ++i) drawing += "f" + std::to_string(i) + "  0.0014\n";
  // WHEN they are written
  const std::string text = write(draw_profile(drawing));
  // THEN the weights add up to 1400, not to 1000
  std::int64_t sum = 0;
  for (std::size_t at = text.find(' '); at != std::string::npos; at = text.find(' ', at + 1))
    sum += std::strtoll(text.c_str() + at, nullptr, 10);
  EXPECT_EQ(sum, 1400);
}

TEST(Collapsed, IsOneLineForStacksThatDifferInWhatItHasNoPlaceFor) {
  // GIVEN calls from two places of a line, and one from another line
  profile::Profile profile = draw_profile("main(app.py:1);work 1\n main(app.py:1);work 2\n main(app.py:2);work 4");
  profile::Frame there = profile.frames[profile.stacks[profile.stacks[profile.samples.stack[1]].parent].frame];
  there.column = 7;
  const StackId caller = profile.stacks.intern({StackId{}, profile.frames.intern(there)});
  const FrameId work = profile.stacks[profile.samples.stack[1]].frame;
  profile.samples.stack[1] = profile.stacks.intern({caller, work});
  // WHEN they are written THEN those that read the same are one line
  EXPECT_EQ(write(profile), "main (app.py:1);work 3000\nmain (app.py:2);work 4000\n");
}

TEST(Collapsed, LeavesOutStacksWithoutWeight) {
  // GIVEN a sample that stands for no time WHEN it is written THEN it has no line
  EXPECT_EQ(write(draw_profile("idle  0\n busy  1")), "busy 1000\n");
}

TEST(Collapsed, NamesTheThreadWhereThereIsMoreThanOne) {
  // GIVEN samples of two threads of one process WHEN they are written THEN the thread is the outermost element
  EXPECT_EQ(write(draw_profile("main  1\n worker | run  2\n main  4")),
            "MainThread;main 5000\n"
            "worker;run 2000\n");
}

TEST(Collapsed, DoesNotNameThreadsThatHaveNoSamples) {
  // GIVEN a second thread without samples WHEN the profile is written THEN the one thread needs no name
  profile::Profile profile = draw_profile("main  1");
  profile::testing::draw_thread(profile, "idle");
  EXPECT_EQ(write(profile), "main 1000\n");
}

TEST(Collapsed, NamesTheProcessWhereThereIsMoreThanOne) {
  // GIVEN samples of two processes WHEN they are written THEN the process comes before the thread
  EXPECT_EQ(write(draw_profile("main  1\n MainThread@200 | main  2")),
            "process 100;MainThread;main 1000\n"
            "process 200;MainThread;main 2000\n");
}

TEST(Collapsed, KeepsTheTimeOfTheEmptyStack) {
  // GIVEN a sample without frames WHEN it is written THEN its time is not lost
  EXPECT_EQ(write(draw_profile("-  3")), "[no stack] 3000\n");
}

TEST(Collapsed, ReplacesCharactersThatTheFormatNeeds) {
  // GIVEN a function whose name has a semicolon, a line end and an invalid byte
  profile::Profile profile = draw_profile("main  1");
  const profile::Function odd{profile.strings.intern("a;b\nc\xff"), {}, 0, profile::FunctionKind::kNative};
  const FrameId frame = profile.frames.intern({profile.functions.intern(odd), 0, 0});
  profile.samples.stack[0] = profile.stacks.intern({StackId{}, frame});
  // WHEN it is written THEN it is still one frame on one line
  EXPECT_EQ(write(profile), "a,b c\xef\xbf\xbd 1000\n");
}

TEST(Collapsed, IsEmptyWithoutSamples) {
  // GIVEN no samples WHEN they are written THEN there is no line
  EXPECT_EQ(write(draw_profile("")), "");
}

}  // namespace
}  // namespace plimsoll::formats::collapsed
