// profile/memory_moments_test.cc: moments of recordings with many blocks, held against the view of each moment.
#include <gtest/gtest.h>

#include "base/poisson.h"
#include "profile/memory.h"
#include "profile/testing.h"

namespace plimsoll::profile {
namespace {

constexpr std::int64_t kEnd = 1'000'000;

// A recording of blocks of 40 functions, each with a life of its own, and some with none; the same each time.
Profile with_many_blocks(std::size_t count) {
  Profile profile = testing::draw_profile("main 1");
  profile.end_ns = kEnd;
  profile.allocation_distance = 1000;
  std::uint64_t state = 1;
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(next_random(state) % static_cast<std::uint64_t>(limit));
  };
  for (std::size_t i = 0; i < count; ++i) {
    AllocationRow row;
    row.number = i;
    row.thread = ThreadId{0};
    row.stack = below(20) == 0 ? StackId{} : testing::draw_stack(profile, "main;f" + std::to_string(below(40)));
    row.size = row.chance_bytes = static_cast<std::uint64_t>(below(5000) + 1);
    row.domain = below(3) == 0 ? 3 : 0;
    row.time_ns = below(kEnd);
    if (below(4) != 0) row.freed_ns = row.time_ns + below(kEnd / 10);
    profile.allocations.push_back(row);
  }
  return profile;
}

TEST(MemoryMoments, EachIsTheViewOfWhatIsAliveThen) {
  // GIVEN blocks that come and go all the time
  const Profile profile = with_many_blocks(3000);
  // WHEN moments of a part of the recording are asked for
  const MemoryWindow window{.from_ns = kEnd / 10, .to_ns = kEnd * 9 / 10};
  const std::vector<MemoryMoment> moments = memory_over_time(profile, 37, window);
  ASSERT_EQ(moments.size(), 37U);
  double allocated = 0;
  for (const MemoryMoment& moment : moments) {
    // THEN each has what the view of it has, however it came to that
    MemoryQuestion question = MemoryView::kLive;
    question.at_ns = moment.at_ns;
    const MemoryReport report = memory_report(profile, question);
    EXPECT_EQ(moment.alive.samples, report.all.samples);
    EXPECT_NEAR(moment.alive.bytes, report.all.bytes, 1e-3);
    EXPECT_NEAR(moment.alive.blocks, report.all.blocks, 1e-6);
    EXPECT_NEAR(moment.alive.interval().low, report.all.interval().low, 1e-3);
    EXPECT_NEAR(moment.alive.interval().high, report.all.interval().high, 1e-3);
    double native = 0;
    for (const DomainRow& row : memory_by_domain(profile, question))
      if (!is_pythons(row.domain)) native += row.all.bytes;
    EXPECT_NEAR(moment.alive_native.bytes, native, 1e-3);
    // AND the function that made most of it
    ASSERT_FALSE(report.flat.empty());
    EXPECT_EQ(moment.mostly, report.flat[0].function);
    EXPECT_NEAR(moment.mostly_bytes, report.flat[0].self.bytes, 1e-3);
    allocated += moment.allocated.bytes;
  }
  // AND together they have what was allocated in that part
  double expected = 0;
  for (const AllocationRow& row : profile.allocations) {
    MemoryEstimate one;
    one.add(row, profile.allocation_distance);
    if (row.time_ns >= window.from_ns && row.time_ns <= window.to_ns) expected += one.bytes;
  }
  EXPECT_NEAR(allocated, expected, 1e-3);
}

TEST(MemoryMoments, WhereNothingIsLeftThereIsNothing) {
  // GIVEN blocks of sizes that no sum of doubles has exactly, all of which are freed
  Profile profile = with_many_blocks(3000);
  for (AllocationRow& row : profile.allocations) row.freed_ns = kEnd - 1;
  // THEN the last moment has no rest of rounding, and nobody who made it; but what no sample has told of may be alive
  const MemoryMoment last = memory_over_time(profile, 10).back();
  EXPECT_EQ(last.alive.bytes, 0);
  EXPECT_EQ(last.alive.interval().low, 0);
  EXPECT_NEAR(last.alive.interval().high, 3.688879 * 1000, 1e-3);
  EXPECT_EQ(last.alive_native.variance, 0);
  EXPECT_TRUE(last.mostly.is_none());
}

TEST(MemoryMoments, TheirNumberIsNoFactorOfTheWork) {
  // GIVEN a recording WHEN there are as many moments as blocks THEN the work is not the product of the two
  const Profile profile = with_many_blocks(300'000);
  const std::vector<MemoryMoment> moments = memory_over_time(profile, 300'000);
  MemoryQuestion question = MemoryView::kLive;
  question.at_ns = kEnd;
  EXPECT_EQ(moments.back().alive.samples, memory_report(profile, question).all.samples);
}

TEST(MemoryMoments, OfABeginningBehindTheEndThereIsTheEnd) {
  const Profile profile = with_many_blocks(10);
  for (const MemoryMoment& moment : memory_over_time(profile, 3, {.from_ns = kEnd * 2, .to_ns = kEnd * 3}))
    EXPECT_EQ(moment.at_ns, kEnd);
  for (const MemoryMoment& moment : memory_over_time(profile, 3, {.from_ns = -5, .to_ns = -1}))
    EXPECT_EQ(moment.at_ns, 0);
  EXPECT_TRUE(memory_over_time(profile, 0).empty());
}

}  // namespace
}  // namespace plimsoll::profile
