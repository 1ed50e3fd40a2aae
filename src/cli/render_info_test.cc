// cli/render_info_test.cc: the facts of drawn sessions.
#include <gtest/gtest.h>

#include "cli/session_facts.h"
#include "profile/testing.h"

namespace plimsoll::cli {
namespace {

profile::Profile sample() {
  profile::Profile profile = profile::testing::draw_profile(R"(
             main;parse   600 @700
    worker | run          350 @900
  )");
  profile.set_meta("python", "3.12.4");
  profile.set_meta("engine", "cpu_timer");
  profile.set_meta("rate_hz", "1000");
  profile.set_meta("argv", "python3 app.py");
  profile.set_meta("plimsoll", "0.1.0");
  profile.set_meta("platform", "Linux x86_64");
  profile.process_cpu_ns = 1'000'000'000;
  profile.drops.push_back({"ring full", 2, 3'000'000});
  profile.counters.push_back({ProcessId{0}, "rss", "bytes", {0, 10, 20}, {10'000'000, 345'000'000, 50'000'000}});
  profile.markers.push_back({1, 2'500'000, {}, "GC", {}});
  profile.markers.push_back({2, 12'500'000, {}, "GC", {}});
  profile.markers.push_back({3, 0, {}, "fork", {}});
  return profile;
}

TEST(RenderInfo, TellsOfAllocations) {
  profile::Profile profile = sample();
  profile::AllocationRow row;
  row.size = 1500;
  row.blocks = 3;
  profile.allocations = {row, row};
  profile.is_exact = true;
  const auto told = [&] { return render_info(profile, session_facts(profile, 1234), "app.plim", Page{}); };
  EXPECT_NE(told().find("\nallocations     6 blocks, 3.00 kB, all that were recorded\n"), std::string::npos) << told();
  profile.is_exact = false;
  profile.allocation_distance = 512'000;
  EXPECT_NE(told().find("\nallocations     6 blocks, 3.00 kB sampled, one for every 512 kB\n"), std::string::npos);
}

TEST(RenderInfo, CountsThreadsOnlyIfTheyAreToldApart) {
  // GIVEN a recording of PyPy, which gives samples of all threads one id
  profile::Profile profile = sample();
  profile.threads.resize(1);
  profile.threads[0].os_tid = 0;
  profile.threads[0].name = profile::kAllThreads;
  const std::string told = render_info(profile, session_facts(profile, 1234), "app.plim", Page{});
  EXPECT_NE(told.find("\nthreads         not told apart\n"), std::string::npos) << told;
}

TEST(RenderInfo, TellsEveryFactInALine) {
  const profile::Profile profile = sample();
  EXPECT_EQ("\n" + render_info(profile, session_facts(profile, 1234), "app.plim", Page{}), R"(
app.plim

program         python3 app.py
python          Python 3.12.4
plimsoll        0.1.0
platform        Linux x86_64
started         2026-01-02 03:04:05 UTC
elapsed         900 ms
complete        yes

engine          cpu_timer
rate            1000 Hz asked, 2.11 Hz delivered (per second of CPU time)
samples         2
CPU time        1.00 s of the process, 950 ms covered by samples (95.0 %)
lost            2 samples (ring full), 3.00 ms of CPU time

processes       1
threads         2
rss             peak 345 MB, last 50.0 MB, least 10.0 MB
GC              2 times, 15.0 ms together, longest 12.5 ms
fork            once

tables          3 strings, 3 functions, 3 frames, 3 stacks
sources         none held
file            1.23 kB, 617.00 bytes per sample
)");
}

TEST(RenderInfo, SaysThatAFileEndsEarlyAndThatNothingWasLost) {
  profile::Profile profile = sample();
  profile.complete = false;
  profile.drops.clear();
  const std::string text = render_info(profile, session_facts(profile, 1234), "app.plim", Page{});
  EXPECT_NE(text.find("complete        no: the program was killed or is still running\n"), std::string::npos) << text;
  EXPECT_NE(text.find("lost            nothing\n"), std::string::npos) << text;
}

TEST(RenderInfo, HasNothingToDivideByInAnEmptyProfile) {
  const profile::Profile profile = profile::testing::draw_profile("");
  const std::string text = render_info(profile, session_facts(profile, 64), "empty.plim", Page{});
  EXPECT_NE(text.find("rate            nothing delivered\n"), std::string::npos) << text;
  EXPECT_NE(text.find("file            64 B\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace plimsoll::cli
