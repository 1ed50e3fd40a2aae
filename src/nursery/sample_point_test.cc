#include "nursery/sample_point.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace plimsoll::nursery {
namespace {

TEST(SamplePoint, FixedPointsAreEveryNthByteHoweverTheBytesAreCounted) {
  for (const std::uint64_t step : {1, 7, 64, 99, 100, 101, 1000, 12345}) {
    // GIVEN a point at each hundredth byte
    SamplePoint point({100, Distance::Law::kFixed}, 1);
    // WHEN a million bytes are allocated, some at a time
    std::uint64_t points = 0;
    std::uint64_t bytes = 0;
    for (; bytes < 1'000'000; bytes += step) points += point.advance(step);
    // THEN each hundredth has been met
    EXPECT_EQ(points, bytes / 100) << "in steps of " << step;
    EXPECT_EQ(point.ahead(), 100 - bytes % 100);
  }
}

TEST(SamplePoint, WithoutADistanceThereIsNoPoint) {
  SamplePoint point({}, 1);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(point.advance(std::uint64_t{1} << 50U), 0U);
}

TEST(SamplePoint, RandomPointsDoNotDependOnHowBytesAreCounted) {
  // GIVEN the same points twice
  SamplePoint in_one({1000, Distance::Law::kExponential}, 7);
  SamplePoint in_many({1000, Distance::Law::kExponential}, 7);
  // WHEN the same bytes are counted at once, and by 13
  std::uint64_t points = 0;
  for (int i = 0; i < 100'000; ++i) points += in_many.advance(13);
  // THEN the points are the same
  EXPECT_EQ(in_one.advance(1'300'000), points);
  EXPECT_EQ(in_one.ahead(), in_many.ahead());
}

TEST(SamplePoint, RandomPointsAreAPoissonProcessOfTheRightRate) {
  // GIVEN 4000 stretches of 100 mean distances
  constexpr double kExpected = 100;
  SamplePoint point({4096, Distance::Law::kExponential}, 42);
  double sum = 0;
  double squares = 0;
  constexpr int kTrials = 4000;
  for (int i = 0; i < kTrials; ++i) {
    const auto points = static_cast<double>(point.advance(4096 * 100));
    sum += points;
    squares += points * points;
  }
  // THEN mean and variance are both 100, within five standard errors of what chance allows
  const double mean = sum / kTrials;
  const double variance = squares / kTrials - mean * mean;
  EXPECT_NEAR(mean, kExpected, 5 * std::sqrt(kExpected / kTrials));
  EXPECT_NEAR(variance, kExpected, 5 * kExpected * std::sqrt(2.0 / kTrials));
}

TEST(SamplePoint, DistancesFrom64BytesTo4GiBAreValid) {
  EXPECT_TRUE((Distance{64}.is_valid()));
  EXPECT_TRUE((Distance{std::uint64_t{1} << 32U}.is_valid()));
  EXPECT_TRUE(Distance{}.is_valid());
  EXPECT_FALSE((Distance{63}.is_valid()));
  EXPECT_FALSE((Distance{(std::uint64_t{1} << 32U) + 1}.is_valid()));
}

}  // namespace
}  // namespace plimsoll::nursery
