#include "cli/cpu_clock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmath>

#include "base/clock.h"

namespace plimsoll::cli {
namespace {

constexpr std::int64_t kMs = 1'000'000;

TEST(CpuClock, StandsStillWhileTheProgramWaits) {
  // GIVEN a program that runs 20 ms, waits a second, runs 20 ms at half speed, and waits on
  CpuClock clock(0, 0);
  for (int i = 1; i <= 4; ++i) clock.note(5 * i * kMs, 5 * i * kMs);
  for (int i = 1; i <= 200; ++i) clock.note(20 * kMs, (20 + 5 * i) * kMs);
  for (int i = 1; i <= 8; ++i) clock.note((40 + 5 * i) * kMs / 2, (1020 + 5 * i) * kMs);
  clock.note(40 * kMs, 3000 * kMs);
  // WHEN it is asked THEN, to 5 ms, what came before the wait is before it, and what came after is after it
  const auto expect_near = [](std::int64_t got_ns, std::int64_t ms) {
    EXPECT_LE(std::abs(got_ns - ms * kMs), 5 * kMs) << got_ns;
  };
  expect_near(clock.time_of(10 * kMs), 10);
  expect_near(clock.time_of(20 * kMs), 20);
  expect_near(clock.time_of(21 * kMs), 1022);
  expect_near(clock.time_of(30 * kMs), 1040);
  expect_near(clock.time_of(40 * kMs), 1060);
  expect_near(clock.cpu_at(15 * kMs), 15);
  expect_near(clock.cpu_at(500 * kMs), 20);
  expect_near(clock.cpu_at(1040 * kMs), 30);
  // AND outside it runs as fast as the time of day, and the ends of even stretches are all that is kept
  EXPECT_EQ(clock.time_of(41 * kMs), 3001 * kMs);
  EXPECT_EQ(clock.time_of(-1 * kMs), -1 * kMs);
  EXPECT_EQ(clock.last_cpu_ns(), 40 * kMs);
  EXPECT_LE(clock.size(), 6U);
}

TEST(CpuClock, TellsTheTimeToFiveMillisecondsWithFewMoments) {
  // GIVEN a program whose speed changes all the time
  const auto cpu_at = [](double ms) { return static_cast<std::int64_t>((ms + 300 * std::sin(ms / 1000)) * 1e6); };
  CpuClock clock(cpu_at(0), 0);
  for (int ms = 5; ms <= 100'000; ms += 5) clock.note(cpu_at(ms), ms * kMs);
  // WHEN all of it is asked for THEN it is right to 5 ms, by a fraction of what was noted
  for (int ms = 0; ms <= 100'000; ++ms)
    ASSERT_NEAR(static_cast<double>(clock.time_of(cpu_at(ms))), static_cast<double>(ms * kMs), 5.1e6) << ms;
  EXPECT_LT(clock.size(), 1'000U);
}

TEST(CpuClock, TakesAFewMegabytesForDays) {
  // GIVEN a program that waits for 10 ms after each 5, for a day WHEN all of that is noted THEN it is thinned out, and
  // still told to half a second
  CpuClock clock(0, 0);
  constexpr std::int64_t kRounds = 86'400'000 / 15;
  for (std::int64_t i = 1; i <= kRounds; ++i) {
    clock.note(5 * i * kMs, (15 * i - 10) * kMs);
    clock.note(5 * i * kMs, 15 * i * kMs);
  }
  EXPECT_LT(clock.size(), 200'001U);
  for (std::int64_t i = 1; i < kRounds; i += 1009)
    ASSERT_NEAR(static_cast<double>(clock.time_of(5 * i * kMs)), static_cast<double>(15 * i * kMs), 5e8) << i;
}

TEST(CpuClock, LeavesOutWhatGoesBackwards) {
  CpuClock clock(0, 1000 * kMs);
  clock.note(100 * kMs, 1100 * kMs);
  clock.note(200 * kMs, 900 * kMs);  // the time of day was set
  clock.note(50 * kMs, 1200 * kMs);
  EXPECT_EQ(clock.size(), 2U);
}

TEST(CpuClocks, AreNotedUntilTheProgramEnds) {
  // GIVEN a program that uses 50 ms of CPU time, and a child of it that waits
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (const pid_t grandchild = ::fork(); grandchild == 0) {
      ::pause();
    } else {
      (void)!::write(ready[1], &grandchild, sizeof grandchild);
      while (process_cpu_ns() < 50 * kMs) continue;
    }
    ::_exit(0);
  }
  pid_t grandchild = 0;
  ASSERT_EQ(::read(ready[0], &grandchild, sizeof grandchild), static_cast<ssize_t>(sizeof grandchild));
  // WHEN their clocks are watched THEN both have been seen, and the program's up to its end
  const std::int64_t before_ns = realtime_ns();
  const CpuClocks clocks = watch_cpu_clocks(os::Pid{child}, Watched::kDescendants);
  ::kill(grandchild, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(clocks.of.contains(os::Pid{grandchild}));
  const CpuClock& clock = clocks.of.at(os::Pid{child});
  EXPECT_GE(clock.last_cpu_ns(), 50 * kMs);
  EXPECT_GT(clock.time_of(50 * kMs), before_ns);
  EXPECT_LE(clock.time_of(clock.last_cpu_ns()), realtime_ns());
}

}  // namespace
}  // namespace plimsoll::cli
