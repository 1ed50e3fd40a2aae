// cli/summary_test.cc: heading and caveats.
#include "cli/summary.h"

#include <gtest/gtest.h>

#include "formats/pypylog/reader.h"
#include "profile/testing.h"
#include "profile/time_kind.h"

namespace plimsoll::cli {
namespace {

profile::Profile sample() {
  profile::Profile profile = profile::testing::draw_profile(R"(
             main;parse   600 @700
             main          50 @750
    worker | run          350 @900
  )");
  profile.set_meta("python", "3.12.4");
  profile.set_meta("rate_hz", "1000");
  profile.set_meta("argv", "python3 app.py --fast");
  return profile;
}

Page page_of(std::size_t width) {
  Page page;
  page.width = width;
  return page;
}

TEST(Heading, TellsWhatTheNumbersAre) {
  profile::Profile profile = sample();
  EXPECT_EQ(heading(profile, select(profile, {}), Page{}),
            "CPU time 1.00 s · 3 samples · asked 1000 Hz, got 3 Hz · Python 3.12.4 · 900 ms elapsed\n"
            "python3 app.py --fast\n"
            "\n");
}

TEST(Heading, CountsThreadsOnlyIfTheyAreToldApart) {
  profile::Profile profile = sample();
  EXPECT_EQ(count_of_threads(profile), "2 threads");
  // GIVEN a recording of PyPy, which gives samples of all threads one id
  profile.threads.resize(1);
  profile.threads[0].os_tid = 0;
  profile.threads[0].name = "all threads";
  EXPECT_EQ(count_of_threads(profile), "threads not told apart");
}

TEST(AskedHz, IsRoundedAsPeopleReadIt) {
  profile::Profile profile = sample();
  const std::pair<const char*, const char*> texts[] = {{"1000", "1000"},     {"1010.1010101", "1010.1"},
                                                       {"100000", "100000"}, {"0.25", "0.25"},
                                                       {"often", "often"},   {"", ""}};
  for (const auto& [told, shown] : texts) {
    profile.set_meta("rate_hz", told);
    EXPECT_EQ(asked_hz(profile), shown);
  }
}

TEST(Heading, CallsWallClockTimeNotOneOfACpu) {
  // GIVEN a recording of all time, by a tool that does not tell who waited WHEN it is shown THEN it is just time
  profile::Profile profile = sample();
  profile.set_meta("mode", "wall");
  EXPECT_TRUE(heading(profile, select(profile, {}), Page{}).starts_with("time 1.00 s"));
}

TEST(Heading, CallsTimeOfOtherToolsOneOfACpuOnlyIfTheySaySo) {
  // GIVEN a file of another tool that does not tell which time it has
  profile::Profile profile = sample();
  profile.set_meta("format", "speedscope");
  EXPECT_TRUE(heading(profile, select(profile, {}), Page{}).starts_with("time 1.00 s"));
  // AND one that does, by a fact or by telling waits apart
  profile.samples.activity.back() = Activity::kSleep;
  EXPECT_TRUE(profile::is_cpu_time(profile));
  profile.samples.activity.back() = Activity::kRunning;
  profile.set_meta("mode", "cpu");
  EXPECT_TRUE(heading(profile, select(profile, {}), Page{}).starts_with("CPU time 1.00 s"));
}

TEST(Heading, LeavesOutWhatANarrowPageHasNoRoomFor) {
  profile::Profile profile = sample();
  EXPECT_EQ(heading(profile, select(profile, {}), page_of(60)),
            "CPU time 1.00 s · 3 samples · asked 1000 Hz, got 3 Hz\n"
            "python3 app.py --fast\n"
            "\n");
}

TEST(Heading, TellsWhatWasSelectedAndHowMuchThatIs) {
  profile::Profile profile = sample();
  const Selection selection = select(profile, {.thread = "main", .from_ns = 0, .to_ns = 720'000'000});
  EXPECT_NE(
      heading(profile, selection, Page{}).find("shown: 600 ms (60.0 %), 1 sample: thread \"main\", up to 720 ms\n"),
      std::string::npos)
      << heading(profile, selection, Page{});
}

TEST(Caveats, AreNoneForAPerfectProfile) {
  profile::Profile profile = sample();
  EXPECT_EQ(caveats(profile, select(profile, {}), Page{}), "");
}

TEST(Caveats, NameLossesGapsAndAnEarlyEnd) {
  // GIVEN a profile that lost samples, has one without all its frames, misses CPU time and was cut
  profile::Profile profile = sample();
  profile.drops.push_back({"ring full", 12, 12'000'000});
  profile.drops.push_back({"torn", 0, 0});
  profile.drops.push_back({"native frames missing: no unwind rule", 1, 0});
  profile.process_cpu_ns = 2'000'000'000;
  profile.complete = false;
  // WHEN it is shown, THEN each has its line
  EXPECT_EQ(caveats(profile, select(profile, {}), Page{}),
            "lost: 12 samples (ring full), 12.0 ms of CPU time\n"
            "not whole: 1 stack (native frames missing: no unwind rule)\n"
            "not covered by samples: 1.00 s of the 2.00 s of CPU time that the process used (50.0 %)\n"
            "incomplete: the program was killed or is still running; this is what was recorded by then\n");
}

TEST(Caveats, SayThatTimesAreTicksOfAnUnknownClock) {
  // GIVEN a log of PyPy's that does not tell its clock WHEN it is shown THEN its times are not taken for such
  profile::Profile profile = sample();
  profile.set_meta("weights", formats::pypylog::kAssumedTicks);
  EXPECT_EQ(caveats(profile, select(profile, {}), Page{}),
            "the log does not tell how long its ticks are: each is shown as a nanosecond, and only shares are right\n");
  // AND where the JIT tells THEN it is said what that is good for
  profile.set_meta("weights", formats::pypylog::kEstimatedTicks);
  EXPECT_NE(caveats(profile, select(profile, {}), Page{}).find("times may be too short"), std::string::npos);
}

TEST(Caveats, OfSeveralProcessesDoNotSayThatTheProgramWasKilled) {
  // GIVEN the profiles of a server and its workers, one of which was killed
  profile::Profile profile = sample();
  profile.processes = {{1, 0, "server"}, {2, 1, "server"}};
  profile.complete = false;
  // THEN it is one of them
  EXPECT_EQ(caveats(profile, select(profile, {}), Page{}),
            "incomplete: one of the processes at least was killed or is still running; this is what was recorded by "
            "then\n");
}

TEST(PythonOf, PutsAWordBeforeABareVersion) {
  profile::Profile profile = profile::testing::draw_profile("");
  EXPECT_EQ(python_of(profile), "");
  profile.set_meta("python", "3.14.0");
  EXPECT_EQ(python_of(profile), "Python 3.14.0");
  profile.set_meta("python", "CPython 3.14.0 free-threaded");
  EXPECT_EQ(python_of(profile), "CPython 3.14.0 free-threaded");
}

}  // namespace
}  // namespace plimsoll::cli
