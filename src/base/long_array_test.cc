// base/long_array_test.cc: arrays that are long or short, or become long.
#include "base/long_array.h"

#include <gtest/gtest.h>

#include <numeric>

namespace plimsoll {
namespace {

TEST(LongArray, KeepsWhatIsWrittenToItLongOrShort) {
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

}  // namespace
}  // namespace plimsoll
