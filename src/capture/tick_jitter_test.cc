// capture/tick_jitter_test.cc
#include "capture/tick_jitter.h"

#include <gtest/gtest.h>

#include <array>

namespace plimsoll::capture {
namespace {

constexpr std::int64_t kPeriod = 1'000'000;

class TickJitterTest : public testing::Test {
 protected:
  std::int64_t next(std::int64_t period_ns) { return jitter_.next(period_ns, random_); }

 private:
  TickJitter jitter_;
  std::uint64_t random_ = 4711;
};

TEST_F(TickJitterTest, PeriodsAreSpreadOverAQuarterUpAndDown) {
  // GIVEN many periods, one step each
  std::array<int, 8> counts{};
  constexpr int kSteps = 16'000;
  constexpr int kEach = kSteps / 8;
  for (int i = 0; i < kSteps; ++i) {
    const std::int64_t period = next(kPeriod);
    next(kPeriod);
    // THEN each is within a quarter of what was asked for
    ASSERT_GE(period, kPeriod * 3 / 4);
    ASSERT_LT(period, kPeriod * 5 / 4);
    ++counts.at(static_cast<std::size_t>((period - kPeriod * 3 / 4) / (kPeriod / 16)));
  }
  // AND each sixteenth of it is met as often as the others, within five standard deviations
  for (const int count : counts) EXPECT_NEAR(count, kEach, 5 * 42);
}

TEST_F(TickJitterTest, TwoPeriodsTakeTheTimeOfTwo) {
  for (int i = 0; i < 1'000; ++i) EXPECT_NEAR(static_cast<double>(next(kPeriod) + next(kPeriod)), 2.0 * kPeriod, 1.0);
}

TEST_F(TickJitterTest, ARateThatWasRaisedHalfWayHasNothingOfTheOldOne) {
  // GIVEN a step of a long period that is still to be taken back
  for (int i = 0; i < 1'000; ++i) {
    next(20 * kPeriod);
    // WHEN the next one is short
    const std::int64_t period = next(kPeriod);
    // THEN it is within a quarter of itself, too
    EXPECT_GE(period, kPeriod * 3 / 4);
    EXPECT_LE(period, kPeriod * 5 / 4);
  }
}

}  // namespace
}  // namespace plimsoll::capture
