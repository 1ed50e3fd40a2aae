// base/large_pages_test.cc: long arrays have all of their memory, short ones are as any others.
#include "base/large_pages.h"

#include <gtest/gtest.h>

#include <numeric>

namespace plimsoll {
namespace {

TEST(LargePages, LongAndShortArraysKeepWhatIsWrittenToThem) {
  for (const std::size_t count : {std::size_t{3}, std::size_t{1} << 19U, std::size_t{5} << 20U}) {
    // GIVEN an array that begins in malloc's memory and may end in a mapping
    LongArray<std::uint32_t> array;
    for (std::uint32_t i = 0; i < count; ++i) array.push_back(i);
    // WHEN it is copied, and the first is no more
    LongArray<std::uint32_t> copy = array;
    array = LongArray<std::uint32_t>();
    // THEN
    ASSERT_EQ(copy.size(), count);
    EXPECT_EQ(std::accumulate(copy.begin(), copy.end(), std::uint64_t{0}), std::uint64_t{count} * (count - 1) / 2);
    EXPECT_EQ(array.capacity(), 0U);
  }
}

TEST(LargePages, CanBeWantedUnderArraysOfAnyLength) {
  want_large_pages(std::vector<char>());
  std::vector<std::uint64_t> array;
  array.reserve(std::size_t{3} << 20U);
  want_large_pages(array);
  array.assign(array.capacity(), 7);
  EXPECT_EQ(array.front() + array.back(), 14U);
}

}  // namespace
}  // namespace plimsoll
