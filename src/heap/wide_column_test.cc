// heap/wide_column_test.cc: columns give back what they were given, whatever its upper half.
#include "heap/wide_column.h"

#include <gtest/gtest.h>

#include <random>

namespace plimsoll::heap {
namespace {

using Numbers = std::vector<std::uint64_t>;

TEST(WideColumn, GivesBackNumbersOfEveryWidth) {
  // GIVEN addresses of a program, and after them some that are no neighbours
  const Numbers numbers{0x1000, 0xffffffff, 0x100000000, 0x55aa00000000, 0x7f00dead0010, 0, UINT64_MAX, 1};
  // WHEN
  const WideColumn column(numbers);
  // THEN
  EXPECT_EQ(column.values(), numbers);
  EXPECT_EQ(column[4], 0x7f00dead0010U);
}

TEST(WideColumn, CanBeCutAndFilledUp) {
  WideColumn column(Numbers{1, std::uint64_t{5} << 32U, 3});
  column.resize(2);
  EXPECT_EQ(column.values(), (Numbers{1, std::uint64_t{5} << 32U}));
  column.resize(4);
  column.push_back(9);
  EXPECT_EQ(column.values(), (Numbers{1, std::uint64_t{5} << 32U, 0, 0, 9}));
  column.resize(0);
  column.resize(1);
  EXPECT_EQ(column.values(), Numbers{0});
}

TEST(WideColumn, SumsMoreThanFourGigabytes) {
  EXPECT_EQ(WideColumn(Numbers(3, std::uint64_t{3} << 31U)).sum(), std::uint64_t{9} << 31U);
}

TEST(WideColumn, FindsAsStdLowerBoundDoes) {
  std::mt19937_64 engine(32);
  for (int round = 0; round < 50; ++round) {
    // GIVEN sorted numbers, some alike, that cross many borders of 4 GiB
    Numbers numbers(engine() % 100);
    for (std::uint64_t& number : numbers) number = engine() % 50 << 30U;
    std::sort(numbers.begin(), numbers.end());
    const WideColumn column(numbers);
    const std::size_t count = numbers.empty() ? 0 : engine() % numbers.size();
    const std::uint64_t wanted = engine() % 52 << 30U;
    // WHEN / THEN
    const auto end = numbers.begin() + static_cast<std::ptrdiff_t>(count);
    ASSERT_EQ(column.lower_bound(wanted, count),
              static_cast<std::size_t>(std::lower_bound(numbers.begin(), end, wanted) - numbers.begin()));
  }
}

}  // namespace
}  // namespace plimsoll::heap
