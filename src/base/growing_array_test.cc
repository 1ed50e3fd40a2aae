#include "base/growing_array.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

namespace plimsoll {
namespace {

TEST(GrowingArray, KeepsWhatItHasWhileItGrowsToLargePages) {
  // GIVEN an array
  GrowingArray<std::uint64_t> numbers;
  EXPECT_EQ(numbers.size(), 0U);
  // WHEN it grows through all of its sizes, to some megabytes
  constexpr std::uint64_t kCount = 1'500'000;
  for (std::uint64_t i = 0; i < kCount; ++i) numbers.push_back(i * 3);
  // THEN all is where it was
  ASSERT_EQ(numbers.size(), kCount);
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) wrong += numbers[i] == i * 3 ? 0 : 1;
  EXPECT_EQ(wrong, 0U);
  numbers.pop_back();
  EXPECT_EQ(numbers.back(), (kCount - 2) * 3);
}

TEST(GrowingArray, WhatIsAddedUnnamedIsZero) {
  // GIVEN one with an element WHEN it is extended far beyond, and then to less
  GrowingArray<std::uint32_t> numbers;
  numbers.push_back(7);
  numbers.extend(100'000);
  numbers.extend(10);
  // THEN the element is there, and the rest is of zeros
  ASSERT_EQ(numbers.size(), 100'000U);
  EXPECT_EQ(numbers[0], 7U);
  EXPECT_EQ(numbers[1], 0U);
  EXPECT_EQ(numbers[99'999], 0U);
}

TEST(GrowingArray, HasElementsOfAnySizeAndIsFilledAnewOnceItWasFreed) {
  // GIVEN an array whose elements do not fill pages evenly
  struct Three {
    std::uint32_t a = 0, b = 0, c = 0;
  };
  GrowingArray<Three> rows;
  for (std::uint32_t i = 0; i < 100'000; ++i) rows.push_back({i, i + 1, i + 2});
  EXPECT_EQ(rows[99'999].c, 100'001U);
  // WHEN it is freed, and filled again
  rows.free();
  EXPECT_EQ(rows.size(), 0U);
  rows.extend(10'000);
  rows.push_back({1, 2, 3});
  // THEN nothing of before is in it
  EXPECT_EQ(rows[9'999].a, 0U);
  EXPECT_EQ(rows[10'000].c, 3U);
}

TEST(GrowingArray, IsTakenOverAsAWhole) {
  // GIVEN two arrays
  GrowingArray<int> some, others;
  for (int i = 0; i < 1000; ++i) some.push_back(i);
  others.push_back(7);
  // WHEN one is taken over by the other
  others = std::move(some);
  // THEN that has all of it, and the first is empty
  ASSERT_EQ(others.size(), 1000U);
  int sum = 0;
  for (const int number : others) sum += number;
  EXPECT_EQ(sum, 499'500);
  EXPECT_EQ(some.size(), 0U);  // NOLINT(bugprone-use-after-move): that is what is asked
  EXPECT_FALSE(some == others);
}

}  // namespace
}  // namespace plimsoll
