// formats/pypylog/reader_test.cc: sections with and without a clock.
#include "formats/pypylog/reader.h"

#include <gtest/gtest.h>

#include "formats/input.h"
#include "profile/testing.h"

namespace plimsoll::formats::pypylog {
namespace {

// Ticks of half a nanosecond: the log begins at 10 seconds of the day, and ends 1 ms later. One section is never ended.
constexpr std::string_view kLog = R"([1000] {plimsoll-clock-10000000000
[1001] plimsoll-clock-10000000000}
[1b58] {gc-minor
[1f40] {gc-minor-walkroots
[2328] gc-minor-walkroots}
minor collect, total memory used: 19627968
[2af8] gc-minor}
[2ee0] {jit-tracing
[1e9480] {plimsoll-clock-10001000000
[1e9481] plimsoll-clock-10001000000}
)";

TEST(PyPyLog, GivesMarkersAtTheirTime) {
  // GIVEN a profile that began 1 us after the log's first clock section WHEN the log is added
  profile::Profile profile;
  profile.start_realtime_ns = 10'000'001'000;
  ASSERT_TRUE(add_sections(profile, kLog));
  // THEN sections that ended are markers: the log's ticks run (0x1e9480 - 0x1000) / 1 ms
  ASSERT_EQ(profile.markers.size(), 2U);
  const double per_tick = 1e6 / (0x1e9480 - 0x1000);
  EXPECT_EQ(profile.markers[0].name, "gc-minor-walkroots");
  EXPECT_NEAR(static_cast<double>(profile.markers[0].time_ns), (0x1f40 - 0x1000) * per_tick - 1000, 1);
  EXPECT_NEAR(static_cast<double>(profile.markers[0].duration_ns), (0x2328 - 0x1f40) * per_tick, 1);
  EXPECT_EQ(profile.markers[1].name, "gc-minor");
  EXPECT_NEAR(static_cast<double>(profile.markers[1].duration_ns), (0x2af8 - 0x1b58) * per_tick, 1);
}

TEST(PyPyLog, LeavesOutWhatWasBeforeTheProfile) {
  // GIVEN a profile that began within the outer section, after the inner one WHEN the log is added
  profile::Profile profile;
  const double per_tick = 1e6 / (0x1e9480 - 0x1000);
  profile.start_realtime_ns = 10'000'000'000 + static_cast<std::int64_t>((0x2500 - 0x1000) * per_tick);
  ASSERT_TRUE(add_sections(profile, kLog));
  // THEN the inner one is not there, and the outer one begins with the profile
  ASSERT_EQ(profile.markers.size(), 1U);
  EXPECT_EQ(profile.markers[0].name, "gc-minor");
  EXPECT_EQ(profile.markers[0].time_ns, 0);
  EXPECT_NEAR(static_cast<double>(profile.markers[0].duration_ns), (0x2af8 - 0x2500) * per_tick, 2);
  EXPECT_EQ(profile.end_ns, profile.markers[0].duration_ns);
}

TEST(PyPyLog, WithoutItsClockAddsNothing) {
  // GIVEN logs with no clock, one moment, and a clock that cannot be WHEN they are added THEN nothing is made up
  for (const std::string_view log :
       {"[10] {gc-minor\n[20] gc-minor}\n", "[1] {plimsoll-clock-5\n[10] {gc-minor\n[20] gc-minor}\n",
        "[1] {plimsoll-clock-5\n[2] {plimsoll-clock-900000000000\n[10] {gc-minor\n[20] gc-minor}\n",
        "[2] {plimsoll-clock-9\n[1] {plimsoll-clock-5\n", ""}) {
    profile::Profile profile;
    EXPECT_FALSE(add_sections(profile, log)) << log;
    EXPECT_TRUE(profile.markers.empty());
  }
}

TEST(PyPyLog, ByItselfIsAProfileOfItsSections) {
  // GIVEN a log that knows no time WHEN it is read THEN a section's stack weighs a nanosecond a tick
  const Result<profile::Profile> read_back = read_profile(
      "[a] {gc-minor\n[14] {gc-minor-walkroots\n[1e] gc-minor-walkroots}\ntext\n[32] gc-minor}\n[64] {jit-summary\n");
  ASSERT_TRUE(read_back.ok()) << read_back.error().message;
  const profile::Profile& profile = read_back.value();
  EXPECT_EQ(profile::testing::stacks_of(profile),
            (std::vector<std::string>{"gc-minor", "gc-minor;gc-minor-walkroots", "gc-minor"}));
  EXPECT_EQ(profile.samples.weight_ns, (std::vector<std::int64_t>{10, 10, 20}));
  EXPECT_EQ(profile.meta_value("weights"), kAssumedTicks);
  EXPECT_EQ(profile.threads.at(0).name, "PyPyLog");
}

TEST(PyPyLog, TheJitSaysHowLongATickIs) {
  // GIVEN a log in which the JIT was busy twice, for 2,500,000 and 2,700,000 ticks, and says that this took 2 ms
  const std::string log =
      "[64] {jit-tracing\n[c8] {jit-backend\n[12c] jit-backend}\n[262604] jit-tracing}\n"
      "[26260e] {jit-tracing\n[4f58ee] jit-tracing}\n[4f58ee] {jit-summary\n"
      "Tracing:      \t2\t0.001500\nBackend:      \t1\t0.000500\nTOTAL:      \t\t9.000000\n[4f5d08] jit-summary}\n";
  // WHEN it is read THEN a tick is 1/2.6 of a nanosecond
  const profile::Profile profile = read(log).take();
  EXPECT_EQ(profile.meta_value("weights"), kEstimatedTicks);
  EXPECT_NEAR(static_cast<double>(profile.end_ns), (0x4f5d08 - 0x64) / 2.6, 1);
  // AND not if that is too short to tell, or makes no clock
  for (const std::string_view seconds : {"0.000100", "9000.000000", "-1.000000", "1e3", "99999999999999.000000"}) {
    std::string other = log;
    other.replace(other.find("0.001500"), 8, seconds);
    EXPECT_EQ(read(other).value().meta_value("weights"), kAssumedTicks) << seconds;
  }
}

TEST(PyPyLog, IsNotCompleteIfItIsCutWithinALine) {
  EXPECT_TRUE(read(kLog).value().complete);
  EXPECT_FALSE(read(kLog.substr(0, kLog.size() - 1)).value().complete);
}

TEST(PyPyLog, WithAnythingInItIsAnErrorOrAProfile) {
  for (std::size_t size = 0; size < kLog.size(); ++size) (void)read(kLog.substr(0, size));
  EXPECT_FALSE(read("text\n[x] {a\n[1] a\n[] {\n[-5] {b\n").ok());
  EXPECT_TRUE(read("[ffffffffffffff] {a\n[0] a}\n[1] b}\n").ok());
  EXPECT_FALSE(is_pypylog("[1, 2]"));
  EXPECT_FALSE(is_pypylog(R"([{"ph":"X"}])"));
}

}  // namespace
}  // namespace plimsoll::formats::pypylog
