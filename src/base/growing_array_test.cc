#include "base/growing_array.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

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

TEST(GrowingArray, WhatIsAddedUnnamedLeavesWhatIsThere) {
  // GIVEN elements of a size that pages are no multiple of, half of them added unnamed and written to later
  struct Element {
    std::uint32_t numbers[5];
  };
  GrowingArray<Element> elements;
  constexpr std::uint32_t kCount = 100'000;
  // WHEN it grows in both ways, in turn, by steps that end anywhere on a page
  for (std::uint32_t i = 0; elements.size() < kCount; ++i) {
    for (std::uint32_t k = 0; k < i % 300; ++k) elements.push_back({{~0U, ~0U, ~0U, ~0U, ~0U}});
    const std::size_t before = elements.size();
    elements.extend(before + std::size_t{i % 7} * 40);
    for (std::size_t k = before; k < elements.size(); ++k) {
      for (const std::uint32_t number : elements[k].numbers) ASSERT_EQ(number, 0U) << k;
      elements[k] = {{~0U, ~0U, ~0U, ~0U, ~0U}};
    }
    if (i % 11 == 0 && elements.size() > 500)
      for (int k = 0; k < 450; ++k) elements.pop_back();
  }
  // THEN nothing was written over
  std::size_t wrong = 0;
  for (const Element& element : elements)
    for (const std::uint32_t number : element.numbers) wrong += number == ~0U ? 0 : 1;
  EXPECT_EQ(wrong, 0U);
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

TEST(GrowingArray, GrowsIntoWhatWasFreedWhereTheKernelHasNoMoreToGive) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's own allocator has nothing that was freed";
#endif
  // GIVEN an array, much that was freed, and no address space beyond what there is
  GrowingArray<int> numbers;
  for (int i = 0; i < 1000; ++i) numbers.push_back(i);
  std::vector<std::unique_ptr<char[]>> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(std::make_unique<char[]>(std::size_t{60} << 10U));
  const auto last = std::make_unique<char[]>(1000);  // above them: what they leave is not given back
  blocks.clear();
  rlimit limits{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &limits), 0);
  const rlimit none{4096, limits.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &none), 0);
  // WHEN it grows, and another begins THEN nothing is lost
  for (int i = 1000; i < 100'000; ++i) numbers.push_back(i);
  GrowingArray<int> others;
  others.extend(1000);
  // AND there is an end to it, which is said
  EXPECT_THROW(others.extend(std::size_t{1} << 24U), std::bad_alloc);
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limits), 0);
  numbers.extend(200'000);
  for (int i = 0; i < 100'000; ++i) ASSERT_EQ(numbers[static_cast<std::size_t>(i)], i);
  EXPECT_EQ(numbers[150'000], 0);
  EXPECT_EQ(others.size(), 1000U);
}

TEST(GrowingArray, WhatWasTakenAwayIsNotThereWhenItIsExtended) {
  // GIVEN an array from which the last was taken
  GrowingArray<int> numbers;
  numbers.push_back(1);
  numbers.push_back(2);
  numbers.pop_back();
  // WHEN it is extended THEN the new ones are made of zeros
  numbers.extend(3);
  EXPECT_EQ(numbers[0], 1);
  EXPECT_EQ(numbers[1], 0);
  EXPECT_EQ(numbers[2], 0);
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

TEST(GrowingArray, HasRoomThatWasAskedFor) {
  GrowingArray<std::uint64_t> numbers;
  numbers.reserve(1'000'000);
  EXPECT_EQ(numbers.size(), 0U);
  numbers.push_back(1);
  const std::uint64_t* const first = numbers.data();
  for (std::uint64_t i = 1; i < 1'000'000; ++i) numbers.push_back(i);
  EXPECT_EQ(numbers.data(), first);
  EXPECT_EQ(numbers.back(), 999'999U);
  // AND it keeps that when it is cleared, of zeros again
  numbers.clear();
  EXPECT_EQ(numbers.size(), 0U);
  numbers.extend(1'000'000);
  EXPECT_EQ(numbers.data(), first);
  EXPECT_EQ(numbers[0] + numbers[500'000] + numbers[999'999], 0U);
}

}  // namespace
}  // namespace plimsoll
