// formats/pyinstrument/reader_test.cc: sessions as pyinstrument writes them, and as nobody should.
#include "formats/pyinstrument/reader.h"

#include <gtest/gtest.h>

#include "profile/testing.h"

namespace plimsoll::formats::pyinstrument {
namespace {

using profile::testing::stacks_of;

constexpr std::string_view kSession = R"({"start_time": 1767323045.5, "duration": 0.75, "min_interval": 0.001,
  "sample_count": 3, "start_call_stack": [], "target_description": "Program: tea.py --cups 3", "cpu_time": 0.5,
  "frame_records": [
    [["MainThread\u0000<thread>\u0000140650", "<module>\u0000tea.py\u00001\u0001l18",
      "pour\u0000tea.py\u00005\u0001cPot\u0001l7\u0001h1"], 0.25],
    [["MainThread\u0000<thread>\u0000140650", "<module>\u0000tea.py\u00001\u0001l19", "[await]\u0000\u00000"], 0.5],
    [["<module>\u0000tea.py\u00001"], 1e300]]})";

TEST(Pyinstrument, TellsStacksAndTheTimeTheyLasted) {
  // GIVEN a session WHEN it is read THEN it has the frames, with lines and classes, and weights in nanoseconds
  ASSERT_TRUE(is_pyinstrument(kSession));
  const Result<profile::Profile> read_back = read(kSession);
  ASSERT_TRUE(read_back.ok()) << read_back.error().message;
  const profile::Profile& profile = read_back.value();
  EXPECT_EQ(stacks_of(profile), (std::vector<std::string>{"<module>;Pot.pour", "<module>;[await]", "<module>"}));
  EXPECT_EQ(profile.samples.weight_ns, (std::vector<std::int64_t>{250'000'000, 500'000'000, 0}));
  EXPECT_EQ(profile.samples.time_ns, (std::vector<std::int64_t>{250'000'000, 750'000'000, 0}));
  const profile::Frame& pour = profile.frames[profile.stacks[profile.samples.stack[0]].frame];
  EXPECT_EQ(pour.line, 7U);
  EXPECT_EQ(profile.functions[pour.function].first_line, 5U);
  ASSERT_EQ(profile.threads.size(), 2U);
  EXPECT_EQ(profile.threads[0].name, "MainThread");
  EXPECT_EQ(profile.start_realtime_ns, 1'767'323'045'500'000'000);
  EXPECT_EQ(profile.end_ns, 750'000'000);
  EXPECT_EQ(profile.meta_value("argv"), "tea.py --cups 3");
  EXPECT_EQ(profile.meta_value("rate_hz"), "1000");
  EXPECT_EQ(profile.meta_value("mode"), "wall");
}

TEST(Pyinstrument, WithAnythingInItsPlacesIsAnErrorOrAProfile) {
  // GIVEN sessions that are cut or twisted WHEN they are read THEN nothing worse than an error happens
  for (std::size_t size = 0; size < kSession.size(); ++size) EXPECT_FALSE(read(kSession.substr(0, size)).ok());
  EXPECT_FALSE(read(R"({"start_call_stack":[]})").ok());
  for (const std::string_view text :
       {R"({"frame_records":[]})", R"({"frame_records":[[],7,null,[7],[[7,null]],[["",""],"x"],[{},1]]})",
        R"({"frame_records":[[["\u0001c\u0001l99999999999999999999","\u0000\u0000"],1]],"min_interval":0})"})
    EXPECT_TRUE(read(text).ok()) << text;
}

}  // namespace
}  // namespace plimsoll::formats::pyinstrument
