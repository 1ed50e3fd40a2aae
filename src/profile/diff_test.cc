// profile/diff_test.cc: what drawn profiles have in common, and what chance may do to them.
#include "profile/diff.h"

#include <gtest/gtest.h>

#include <random>

#include "profile/testing.h"

namespace plimsoll::profile {
namespace {

using testing::draw_profile;
using testing::kMillisecond;

// So many samples of a millisecond each, of functions a, b and c on the way of `main`.
Profile sampled(int a, int b, int c, std::string_view directory = "/srv") {
  std::string drawing;
  const std::string file = std::string(directory) + "/app.py";
  const auto draw = [&](std::string_view name, int line, int count) {
    for (int i = 0; i < count; ++i)
      drawing += "main(" + file + ":1);" + std::string(name) + "(" + file + ":" + std::to_string(line) + ") 1\n";
  };
  draw("a", 10, a);
  draw("b", 20, b);
  draw("c", 30, c);
  Profile profile = draw_profile(drawing);
  profile.set_meta("rate_hz", "1000");
  profile.set_meta("directory", directory);
  return profile;
}

const ChangedRow& row_of(const Comparison& comparison, std::string_view function) {
  for (const ChangedRow& row : comparison.functions)
    if (row.function == function) return row;
  ADD_FAILURE() << "no row for " << function;
  return comparison.functions.front();
}

TEST(Diff, TellsWhatGrewWhatShrankAndWhatStayed) {
  const Comparison all = compare(sampled(500, 500, 500), sampled(900, 100, 500));
  EXPECT_EQ(row_of(all, "a").self.change_ns(), 400 * kMillisecond);
  EXPECT_TRUE(row_of(all, "a").self.is_beyond_chance);
  EXPECT_EQ(row_of(all, "b").self.change_ns(), -400 * kMillisecond);
  EXPECT_TRUE(row_of(all, "b").self.is_beyond_chance);
  EXPECT_FALSE(row_of(all, "c").self.is_beyond_chance);
  EXPECT_EQ(all.total.change_ns(), 0);
  EXPECT_FALSE(all.total.is_beyond_chance);
  EXPECT_NE(all.functions.front().function, "main") << "sorted by the change of own time";
}

TEST(Diff, TheErrorIsThatOfCounting) {
  // GIVEN 400 samples of 1 ms on one side, 500 on the other THEN the difference is known to sqrt(900) ms
  const Comparison all = compare(sampled(400, 0, 0), sampled(500, 0, 0));
  EXPECT_NEAR(row_of(all, "a").self.error_ns, 30.0 * kMillisecond, 0.1 * kMillisecond);
}

TEST(Diff, ChanceIsNoChange) {
  // GIVEN the same program, sampled twice, a hundred times over
  std::mt19937 random(1);
  int alarms = 0;
  for (int i = 0; i < 100; ++i) {
    const auto draw = [&](int mean) { return std::poisson_distribution<int>(mean)(random); };
    const Comparison all = compare(sampled(draw(300), draw(100), draw(20)), sampled(draw(300), draw(100), draw(20)));
    for (const ChangedRow& row : all.functions) alarms += row.self.is_beyond_chance || row.total.is_beyond_chance;
  }
  // THEN false alarms come once in a hundred reports, on average
  EXPECT_LE(alarms, 5);
}

TEST(Diff, AFunctionThatHasMovedIsTheSame) {
  // GIVEN another checkout of the program
  const Comparison all = compare(sampled(100, 0, 0, "/old/checkout"), sampled(100, 0, 0, "/new"));
  EXPECT_EQ(row_of(all, "a").self.change_ns(), 0);
  EXPECT_EQ(row_of(all, "a").file, "app.py");
  EXPECT_EQ(all.functions.size(), 2U) << "main and a, once each";
}

TEST(Diff, FunctionsOfOneNameAreToldApartByTheirOrder) {
  const auto with_lambdas = [](int first, int second, int shift) {
    Profile profile = draw_profile("lambda(a.py:" + std::to_string(5 + shift) + " def " + std::to_string(5 + shift) +
                                   ") " + std::to_string(first) + "\nlambda(a.py:" + std::to_string(9 + shift) +
                                   " def " + std::to_string(9 + shift) + ") " + std::to_string(second));
    return profile;
  };
  // GIVEN two functions of one name, that have both moved down
  const Comparison all = compare(with_lambdas(10, 70, 0), with_lambdas(10, 70, 3));
  ASSERT_EQ(all.functions.size(), 2U);
  EXPECT_EQ(all.functions[0].self.change_ns(), 0);
  EXPECT_EQ(all.functions[1].self.change_ns(), 0);
}

TEST(Diff, TreesAreComparedCallByCall) {
  Profile before = draw_profile("main;load 10\nmain;save 20");
  Profile after = draw_profile("main;load 10\nmain;check 300");
  before.set_meta("rate_hz", "1000");
  after.set_meta("rate_hz", "1000");
  const Comparison all = compare(std::move(before), std::move(after));
  ASSERT_EQ(all.tree.size(), 5U);
  const ChangedNode& main = all.tree[all.tree[0].children.at(0)];
  EXPECT_EQ(main.function, "main");
  ASSERT_EQ(main.children.size(), 3U);
  EXPECT_EQ(all.tree[main.children[0]].function, "check");
  EXPECT_EQ(all.tree[main.children[0]].total.before_ns, 0);
  EXPECT_EQ(all.tree[main.children[1]].function, "save");
  EXPECT_EQ(all.tree[main.children[1]].total.after_ns, 0);
}

TEST(Diff, LinesMoveWithTheirFunction) {
  Profile before = draw_profile("work(a.py:12 def 10) 40\nwork(a.py:13 def 10) 40");
  Profile after = draw_profile("work(a.py:22 def 20) 40\nwork(a.py:23 def 20) 90");
  const Comparison all = compare(std::move(before), std::move(after));
  ASSERT_EQ(all.lines.size(), 2U);
  EXPECT_EQ(all.lines[0].line, 23U);
  EXPECT_EQ(all.lines[0].self.change_ns(), 50 * kMillisecond);
  EXPECT_EQ(all.lines[1].self.change_ns(), 0);
}

TEST(Diff, EmptyProfilesHaveNothingToTell) {
  const Comparison all = compare(draw_profile(""), draw_profile(""));
  EXPECT_TRUE(all.functions.empty());
  EXPECT_EQ(all.tree.size(), 1U);
  EXPECT_FALSE(all.total.is_beyond_chance);
}

}  // namespace
}  // namespace plimsoll::profile
