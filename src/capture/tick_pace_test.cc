// capture/tick_pace_test.cc
#include "capture/tick_pace.h"

#include <gtest/gtest.h>

namespace plimsoll::capture {
namespace {

constexpr std::int64_t kPeriod = 1'000'000;
constexpr std::int64_t kTicks = 8;

// How many ticks a thread gets in `cpu_ns` whose timer loses so much at each.
std::int64_t count_ticks(std::int64_t cpu_ns, std::int64_t loses_ns) {
  TickPace pace;
  std::int64_t ticks = 0;
  std::int64_t at = 0;
  while (at < cpu_ns) {
    const std::int64_t period = pace.next(at, kTicks, kPeriod);
    at += kTicks * (period + loses_ns);
    ticks += kTicks;
  }
  return ticks;
}

TEST(TickPace, TicksComeAtTheirRateThoughEachIsLate) {
  constexpr std::int64_t kTime = 10'000 * kPeriod;
  for (const std::int64_t loses : {0, 500, 40'000, -20'000})
    EXPECT_NEAR(static_cast<double>(count_ticks(kTime, loses)), 10'000.0, 2 * kTicks) << loses << " ns at each";
}

TEST(TickPace, WhatIsMadeUpForIsNotTakenForHaste) {
  // GIVEN ticks that were late once
  TickPace pace;
  std::int64_t at = 0;
  EXPECT_EQ(pace.next(at, kTicks, kPeriod), kPeriod);
  at += kTicks * kPeriod + 800'000;
  const std::int64_t shorter = pace.next(at, kTicks, kPeriod);
  EXPECT_EQ(shorter, kPeriod - 100'000);
  // WHEN that is made up for, THEN their period is the old one
  at += kTicks * shorter;
  EXPECT_EQ(pace.next(at, kTicks, kPeriod), kPeriod);
}

TEST(TickPace, ALongSystemCallIsNotFollowedByAFloodOfTicks) {
  TickPace pace;
  pace.next(0, kTicks, kPeriod);
  const std::int64_t shorter = pace.next(1'000 * kPeriod, kTicks, kPeriod);
  EXPECT_EQ(shorter, kPeriod - kPeriod / 8);
  std::int64_t at = 1'000 * kPeriod;
  std::int64_t period = shorter;
  int rounds = 0;
  for (; period < kPeriod && rounds < 100; ++rounds) {
    at += kTicks * period;
    period = pace.next(at, kTicks, kPeriod);
  }
  EXPECT_LE(rounds, 5);
}

TEST(TickPace, TimeBeforeARestartIsNotMadeUpFor) {
  TickPace pace;
  pace.next(0, kTicks, kPeriod);
  pace.restart();
  EXPECT_EQ(pace.next(1'000 * kPeriod, kTicks, kPeriod), kPeriod);
}

}  // namespace
}  // namespace plimsoll::capture
