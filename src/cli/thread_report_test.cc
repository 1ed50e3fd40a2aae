// cli/thread_report_test.cc: threads of drawn profiles.
#include "cli/thread_report.h"

#include <gtest/gtest.h>

#include "profile/testing.h"

namespace plimsoll::cli {
namespace {

using profile::testing::draw_profile;

std::string shown(const profile::Profile& profile) {
  Page page;
  page.width = 90;  // a strip of 8 parts
  return "\n" + render_threads(profile, thread_report(profile, busy_parts(page)), page);
}

TEST(RenderThreads, ShowsWhoWasBusyWhen) {
  // GIVEN a main thread that is busy for the first half second, and a worker at the end
  const profile::Profile profile = draw_profile(R"(
             main    250 @250
             main    250 @499
    worker | run      25 @800
  )");
  // WHEN the threads are shown, THEN the heaviest comes first
  EXPECT_EQ(shown(profile), R"(
CPU %  CPU ms  samples  first ms  last ms  activity  tid  thread
 95.2  500.00        2    250.00   499.00  █████     100  MainThread
  4.8   25.00        1    800.00   800.00         ▃  101  worker
)");
}

TEST(RenderThreads, CallsTimeOfOtherToolsCpuTimeOnlyIfTheySaySo) {
  profile::Profile profile = draw_profile("main 250");
  profile.set_meta("format", "speedscope");
  EXPECT_TRUE(shown(profile).starts_with("\ntime %  time ms  samples")) << shown(profile);
  profile.set_meta("mode", "cpu");
  EXPECT_TRUE(shown(profile).starts_with("\nCPU %  CPU ms  samples")) << shown(profile);
}

TEST(RenderThreads, TellsWaitsApartWhereThereAreAny) {
  // GIVEN a thread that computes and sleeps, and one that waits for the GIL
  const profile::Profile profile = draw_profile(R"(
             main    250       @250
             main    750:sleep @1000
    worker | run     500:gil   @500
  )");
  // THEN each has a column, in percent of the thread's own time, and only CPU time makes a thread busy; on a page that
  // is too narrow for all, the numbers of samples are left out before a name is cut
  EXPECT_EQ(shown(profile), R"(
time %  time s  running %  gil %  sleep %  first s  last s  activity  tid  thread
  66.7   1.000       25.0            75.0    0.250   1.000  ██        100  MainThread
  33.3   0.500             100.0             0.500   0.500            101  worker
)");
}

TEST(RenderThreads, NamesTheProcessWhereThereAreSeveral) {
  const profile::Profile profile = draw_profile(R"(
                     main   10
    MainThread@200 | main   20
  )");
  const std::string text = shown(profile);
  EXPECT_NE(text.find("100/100"), std::string::npos) << text;
  EXPECT_NE(text.find("200/200"), std::string::npos) << text;
}

TEST(ThreadReport, GivesAThreadWithoutSamplesItsTimesFromTheTable) {
  profile::Profile profile = draw_profile("idle | main 10");
  profile.samples.clear();
  profile.threads[0].start_ns = 3;
  profile.threads[0].end_ns = 9;
  const std::vector<ThreadRow> rows = thread_report(profile, 4);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].samples, 0U);
  EXPECT_EQ(rows[0].first_ns, 3);
  EXPECT_EQ(rows[0].last_ns, 9);
}

}  // namespace
}  // namespace plimsoll::cli
