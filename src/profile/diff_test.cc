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

// So many samples of blocks of a byte by `keep`, each of which stands for 1000 bytes, and one of 5 MB by `load`.
Profile with_memory(int blocks, std::uint64_t distance) {
  Profile profile = draw_profile("main(app.py:1);keep(app.py:10) 1\nmain(app.py:1);load(app.py:20) 1");
  profile.allocation_distance = distance;
  profile.is_exact = distance == 0;
  for (int i = 0; i <= blocks; ++i) {
    AllocationRow row;
    row.number = static_cast<std::uint64_t>(i);
    row.thread = ThreadId{0};
    row.stack = profile.samples.stack[i == 0 ? 1 : 0];
    row.size = row.chance_bytes = i == 0 ? 5'000'000 : 1;
    profile.allocations.push_back(row);
  }
  return profile;
}

TEST(Diff, OfMemoryKnowsWhatIsAnEstimate) {
  // GIVEN samples of small blocks, 400 and 460, and a large one WHEN the memory is compared
  const Comparison all = compare_memory(with_memory(400, 1000), with_memory(460, 1000), MemoryView::kLive);
  // THEN the difference of estimates is known to sqrt(860) distances, and a block that was sure to be a sample is known
  EXPECT_NEAR(static_cast<double>(row_of(all, "keep").self.change_ns()), 60'030, 60);
  EXPECT_NEAR(row_of(all, "keep").self.error_ns, 29'326, 50);
  EXPECT_FALSE(row_of(all, "keep").self.is_beyond_chance);
  EXPECT_EQ(row_of(all, "load").self.after_ns, 5'000'000);
  EXPECT_EQ(row_of(all, "load").self.error_ns, 0);
  EXPECT_FALSE(row_of(all, "load").self.is_beyond_chance);
  EXPECT_EQ(row_of(all, "main").total.change_ns(), all.total.change_ns());
  EXPECT_NEAR(all.total.error_ns, 29'326, 50);
  EXPECT_TRUE(row_of(compare_memory(with_memory(100, 1000), with_memory(500, 1000), MemoryView::kLive), "keep")
                  .self.is_beyond_chance);
}

TEST(Diff, OfMemoryABlockThatWasPassedOverIsNoChange) {
  // GIVEN a block of 5 MB of a program that allocates such a block in each run, and one run in which it is no sample:
  // as with sample points every 1.5 MB happens in one run of 28, and with points every 400 kB in one of 270,000
  const auto is_gone = [](std::uint64_t distance) {
    Profile without = with_memory(40, distance);
    without.allocations.erase(without.allocations.begin());
    return row_of(compare_memory(with_memory(40, distance), std::move(without), MemoryView::kLive), "load")
        .self.is_beyond_chance;
  };
  // THEN only the latter is more than chance may do, in a report of four rows
  EXPECT_FALSE(is_gone(1'500'000));
  EXPECT_TRUE(is_gone(400'000));
}

TEST(Diff, OfExactMemoryNothingIsChance) {
  const Comparison all = compare_memory(with_memory(400, 0), with_memory(401, 0), MemoryView::kLive);
  EXPECT_EQ(row_of(all, "keep").self.change_ns(), 1);
  EXPECT_TRUE(row_of(all, "keep").self.is_beyond_chance);
  EXPECT_FALSE(row_of(all, "load").self.is_beyond_chance);
  EXPECT_TRUE(all.total.is_beyond_chance);
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

// As formats of sums have it: a row for each stack, and no rate.
Profile summed(std::string_view rows) { return draw_profile(rows); }

TEST(Diff, SumsOfManySamplesAreNotOneSample) {
  // GIVEN stacks with seconds of time each, in a format that tells no rate; and one of them takes twice as long
  const Comparison all = compare(summed("main;f 2000\nmain;g 1000"), summed("main;f 4000\nmain;g 1000"));
  // THEN it is seen, and what was assumed is told
  EXPECT_TRUE(row_of(all, "f").self.is_beyond_chance);
  EXPECT_FALSE(row_of(all, "g").self.is_beyond_chance);
  EXPECT_TRUE(all.total.is_beyond_chance);
  EXPECT_TRUE(all.before_period.is_assumed);
  EXPECT_EQ(all.before_period.ns, 10 * kMillisecond) << "no more than of a sampler of 100 Hz";
}

TEST(Diff, ThePeriodIsThatOfStacksThatWereMetOnce) {
  std::string rows = "hot 900\n";
  for (int i = 0; i < 9; ++i) rows += "rare" + std::to_string(i) + " 2\n";
  const Comparison all = compare(summed(rows), summed(rows));
  EXPECT_EQ(all.before_period.ns, 2 * kMillisecond);
  // 450 samples on each side: the difference is known to sqrt(900) of them.
  EXPECT_NEAR(row_of(all, "hot").self.error_ns, 30.0 * 2 * kMillisecond, 0.1 * kMillisecond);
  EXPECT_FALSE(compare(sampled(1, 1, 1), sampled(1, 1, 1)).before_period.is_assumed);
}

Profile measured(int a, std::string_view mode = "cpu") {
  Profile profile = sampled(a, 0, 0);
  profile.set_meta("plimsoll", "0.1.0");
  profile.set_meta("mode", mode);
  return profile;
}

TEST(Diff, ATotalThatWasMeasuredIsNoChance) {
  // GIVEN 0.7 s of CPU time, and 2 % more
  const Comparison all = compare(measured(700), measured(714), Extent::kWhole);
  // THEN the clocks have shown it, though samples of one function might have been so many more by chance
  EXPECT_TRUE(all.total.is_beyond_chance);
  EXPECT_LT(all.total.error_ns, 2.0 * kMillisecond);
  EXPECT_FALSE(row_of(all, "a").self.is_beyond_chance);
  // AND a thousandth is what repeats differ by
  EXPECT_FALSE(compare(measured(700), measured(701), Extent::kWhole).total.is_beyond_chance);
  // AND of a selection, or of ticks that meet the GIL, it is chance what is in it
  EXPECT_FALSE(compare(measured(700), measured(714), Extent::kSelection).total.is_beyond_chance);
  EXPECT_FALSE(compare(measured(700, "gil"), measured(714, "gil"), Extent::kWhole).total.is_beyond_chance);
}

TEST(Diff, WhereTheRateWasLoweredASampleIsChanceForAllOfItsTime) {
  // GIVEN recordings at 1000 Hz that --max-overhead has brought down to a sample every 25 ms: 9 of them, and 16
  const auto slow = [](int count) {
    std::string drawing;
    for (int i = 0; i < 100; ++i) drawing += i < count ? "main(app.py:1) 25\n" : "other(app.py:5) 25\n";
    Profile profile = draw_profile(drawing);
    profile.meta = measured(0).meta;
    return profile;
  };
  // WHEN they are compared
  const Comparison all = compare(slow(9), slow(16), Extent::kWhole);
  // THEN the difference is known to sqrt(25) of these samples, not of milliseconds
  EXPECT_NEAR(row_of(all, "main").self.error_ns, 125.0 * kMillisecond, 1.0 * kMillisecond);
  EXPECT_FALSE(row_of(all, "main").self.is_beyond_chance);
  EXPECT_EQ(all.before_period.ns, 25 * kMillisecond);
}

TEST(Diff, WhatWasLostIsNotKnown) {
  Profile before = measured(700);
  before.drops.push_back({"ring full", 20, 20 * kMillisecond});
  EXPECT_FALSE(compare(std::move(before), measured(714), Extent::kWhole).total.is_beyond_chance);
}

TEST(Diff, FormatsThatDoNotTellWhereAProgramBeganAreOfThePlaceThatTheOtherTells) {
  Profile foreign = draw_profile("main(/srv/app.py:1);a(/srv/app.py:10) 100");
  const Comparison all = compare(sampled(100, 0, 0), std::move(foreign));
  EXPECT_EQ(all.functions.size(), 2U);
  EXPECT_EQ(row_of(all, "a").self.change_ns(), 0);
}

}  // namespace
}  // namespace plimsoll::profile
