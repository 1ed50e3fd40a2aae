// base/sparse_array_test.cc: what a long array of zeros takes.
#include "base/sparse_array.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace plimsoll {
namespace {

constexpr std::size_t kCount = std::size_t{1} << 20U;
using Numbers = SparseArray<std::uint64_t, kCount>;

std::size_t page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

std::size_t resident_pages(Numbers& numbers) {
  std::vector<unsigned char> facts(kCount * sizeof(std::uint64_t) / page_bytes());
  EXPECT_EQ(::mincore(&numbers[0], kCount * sizeof(std::uint64_t), facts.data()), 0);
  return static_cast<std::size_t>(
      std::count_if(facts.begin(), facts.end(), [](auto each) { return (each & 1U) != 0; }));
}

TEST(SparseArray, TakesMemoryWhereItWasWritten) {
  // GIVEN
  Numbers numbers = Numbers::zeros();
  EXPECT_EQ(resident_pages(numbers), 0U);
  // WHEN two places far apart are written
  numbers[3] = 7;
  numbers[kCount - 1] = 8;
  // THEN these are there, and all else is zero
  EXPECT_EQ(resident_pages(numbers), 2U);
  EXPECT_EQ(numbers[3], 7U);
  EXPECT_EQ(numbers[kCount - 1], 8U);
  EXPECT_EQ(numbers[2], 0U);
}

TEST(SparseArray, IsSomebodysOrNobodys) {
  Numbers none;
  EXPECT_FALSE(none.is_there());
  Numbers first = Numbers::zeros();
  first[5] = 1;
  Numbers second = std::move(first);
  EXPECT_FALSE(first.is_there());  // NOLINT(bugprone-use-after-move): that it is moved from is what is asked
  ASSERT_TRUE(second.is_there());
  EXPECT_EQ(second[5], 1U);
  second = Numbers();
  EXPECT_FALSE(second.is_there());
}

}  // namespace
}  // namespace plimsoll
