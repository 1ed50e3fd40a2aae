// capture/tick_costs_test.cc: the histogram of what ticks take.
#include "capture/tick_costs.h"

#include <gtest/gtest.h>

namespace plimsoll::capture {
namespace {

TEST(TickCosts, SayNothingWhenThereWereNone) {
  const TickCosts costs;
  EXPECT_EQ(costs.count(), 0U);
  EXPECT_EQ(costs.quantile(0.5), 0);
}

TEST(TickCosts, AreRightToAnEighthAtAnyShare) {
  // GIVEN a thousand ticks that took 1 to 1000 us
  TickCosts costs;
  for (std::int64_t us = 1; us <= 1000; ++us) costs.add(1000 * us);
  EXPECT_EQ(costs.count(), 1000U);
  for (const double share : {0.01, 0.5, 0.9, 0.99, 1.0}) {
    const double true_ns = share * 1e6;
    // THEN no quantile is less than the truth, nor an eighth more
    EXPECT_GE(static_cast<double>(costs.quantile(share)), true_ns);
    EXPECT_LE(static_cast<double>(costs.quantile(share)), true_ns * 1.125 + 1);
  }
}

TEST(TickCosts, AreTogetherWithoutWhatOthersTookInBetween) {
  // GIVEN a thousand ticks of 2 to 4 us, and one with a deep stack
  TickCosts costs;
  EXPECT_EQ(costs.undisturbed_ns(), 0);
  for (std::int64_t ns = 2000; ns < 4000; ns += 2) costs.add(ns);
  costs.add(80'000);
  const double true_ns = 1000 * 2999 + 80'000;
  EXPECT_NEAR(static_cast<double>(costs.undisturbed_ns()), true_ns, true_ns / 16);
  // WHEN another program gets the CPU in the middle of ten more
  for (int i = 0; i < 10; ++i) costs.add(4'000'000);
  // THEN its time is not theirs
  EXPECT_NEAR(static_cast<double>(costs.undisturbed_ns()), true_ns + 10 * 3000, true_ns / 16);
}

TEST(TickCosts, TakeWhatClocksThatGoBackwardsAndLongStopsGiveThem) {
  TickCosts costs;
  costs.add(-5);
  EXPECT_EQ(costs.quantile(1), 0);
  costs.add(std::int64_t{1} << 40U);
  EXPECT_EQ(costs.quantile(1), (std::int64_t{1} << 30U) - 1);
}

}  // namespace
}  // namespace plimsoll::capture
