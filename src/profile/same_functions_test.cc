// profile/same_functions_test.cc: which functions are the same, where a file has several of one name.
#include "profile/same_functions.h"

#include <gtest/gtest.h>

#include <set>

#include "profile/diff.h"
#include "profile/testing.h"

namespace plimsoll::profile {
namespace {

using testing::draw_profile;
using testing::kMillisecond;

// A sample of each of these functions of a.py: "name line name line ...".
Profile with(std::string_view functions) {
  std::string drawing;
  while (!functions.empty()) {
    const std::string name(testing::take_until(functions, " "));
    const std::string line(testing::take_until(functions, " "));
    drawing += name;
    drawing += line == "0" ? "(a.py) 1\n" : "(a.py:" + line + " def " + line + ") 1\n";
  }
  return draw_profile(drawing);
}

// The pairs of first lines that are taken for the same function; 0 for a function that only one profile has.
std::set<std::pair<std::uint32_t, std::uint32_t>> pairs(std::string_view before_text, std::string_view after_text) {
  const Profile before = with(before_text), after = with(after_text);
  const SameFunctions same = same_functions(before, after);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> lines(same.all.size());
  for (std::size_t i = 0; i < before.functions.size(); ++i)
    lines[same.before[i]].first = before.functions.rows()[i].first_line;
  for (std::size_t i = 0; i < after.functions.size(); ++i)
    lines[same.after[i]].second = after.functions.rows()[i].first_line;
  return {lines.begin(), lines.end()};
}

using Pairs = std::set<std::pair<std::uint32_t, std::uint32_t>>;

TEST(SameFunctions, OneThatWasNotSampledDoesNotMoveTheOthers) {
  // GIVEN the same program twice, of which the second has met one more function of the name, above or below
  EXPECT_EQ(pairs("init 20", "init 10 init 20"), (Pairs{{0, 10}, {20, 20}}));
  EXPECT_EQ(pairs("init 20 init 30", "init 10 init 20"), (Pairs{{0, 10}, {20, 20}, {30, 0}}));
  EXPECT_EQ(pairs("<module> 1 init 20 init 30 f 40", "<module> 1 init 10 init 30 init 35 f 40"),
            (Pairs{{1, 1}, {20, 10}, {30, 30}, {0, 35}, {40, 40}}));
}

TEST(SameFunctions, WhatHasMovedWithItsSurroundingsIsTheSame) {
  // GIVEN three lines more at the beginning of the file
  EXPECT_EQ(pairs("init 5 init 9", "init 8 init 12"), (Pairs{{5, 8}, {9, 12}}));
  // THEN one that stands where another one stood is not that other one
  EXPECT_EQ(pairs("init 5 init 9 init 12", "init 8 init 12 init 15"), (Pairs{{5, 8}, {9, 12}, {12, 15}}));
  // AND other functions show which it is, where it was not sampled each time
  EXPECT_EQ(pairs("f 2 init 9 g 20 h 30", "f 5 init 8 init 12 g 23 h 33"),
            (Pairs{{2, 5}, {0, 8}, {9, 12}, {20, 23}, {30, 33}}));
  // GIVEN lines more in the middle of it
  EXPECT_EQ(pairs("init 5 f 10 init 20 g 30 h 40", "init 5 f 10 init 18 init 25 g 35 h 45"),
            (Pairs{{5, 5}, {10, 10}, {0, 18}, {20, 25}, {30, 35}, {40, 45}}));
}

TEST(SameFunctions, AFunctionWithoutNamesakesIsTheSameWhereverItIs) {
  EXPECT_EQ(pairs("f 10 g 20", "g 10 f 30"), (Pairs{{10, 30}, {20, 10}}));
  EXPECT_EQ(pairs("a 10 b 20 c 30", "a 10 b 22 c 30"), (Pairs{{10, 10}, {20, 22}, {30, 30}}));
}

TEST(SameFunctions, WithoutFirstLinesAllOfANameAreOne) {
  // GIVEN a format that tells no first lines
  EXPECT_EQ(pairs("init 10 init 20 f 30", "init 0 f 0").size(), 2U);
  const Comparison all = compare(with("init 10 init 20"), draw_profile("init(a.py:11) 1\ninit(a.py:20) 1"));
  ASSERT_EQ(all.functions.size(), 1U);
  EXPECT_EQ(all.functions[0].self.before_ns, 2 * kMillisecond);
  EXPECT_EQ(all.functions[0].self.change_ns(), 0);
  // THEN lines are those of the file
  ASSERT_EQ(all.lines.size(), 3U);
  for (const ChangedRow& row : all.lines) EXPECT_EQ(row.self.change_ns() == 0, row.line == 20) << row.line;
}

TEST(SameFunctions, GeneratedCodeWithThousandsOfOneNameIsComparedInTime) {
  std::string before, after;
  for (int line = 1; line < 4000; ++line) {
    before += "f " + std::to_string(line) + " ";
    if (line % 7 != 0) after += "f " + std::to_string(line) + " ";
  }
  const Pairs found = pairs(before, after);
  for (const auto& [first, second] : found) EXPECT_EQ(first % 7 == 0 ? 0U : first, second);
}

}  // namespace
}  // namespace plimsoll::profile
