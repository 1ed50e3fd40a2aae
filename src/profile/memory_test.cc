#include "profile/memory.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "base/poisson.h"
#include "profile/filter.h"
#include "profile/plim_reader.h"
#include "profile/plim_writer.h"
#include "profile/testing.h"

namespace plimsoll::profile {
namespace {

using namespace testing;

constexpr std::uint64_t kDistance = 1000;

// A profile whose allocations are drawn: stack, size, time of birth, time of death (-1 = alive).
struct DrawnBlock {
  const char* stack;
  std::uint64_t size;
  std::int64_t born = 0;
  std::int64_t died = AllocationRow::kAlive;
};
Profile with_blocks(const std::vector<DrawnBlock>& blocks) {
  Profile profile = draw_profile("main 1");
  profile.allocation_distance = kDistance;
  for (const DrawnBlock& block : blocks) {
    AllocationRow row;
    row.number = profile.allocations.size() * 3;
    row.time_ns = block.born;
    row.thread = ThreadId{0};
    row.stack = draw_stack(profile, block.stack);
    row.size = block.size;
    row.chance_bytes = block.size;
    row.freed_ns = block.died;
    profile.allocations.push_back(row);
  }
  return profile;
}

Profile read_again(const Profile& profile) {
  PlimEncoder encoder(1);
  Result<Profile> read = read_plim(PlimEncoder::file_header() + encoder.encode(profile));
  return read.ok() ? read.take() : Profile{};
}

std::int64_t peak_time_ns(const Profile& profile) { return peak_of(profile).at_ns; }

const MemoryRow* row_of(const Profile& profile, const MemoryReport& report, std::string_view name) {
  for (const MemoryRow& row : report.flat)
    if (row.function == function_named(profile, name)) return &row;
  return nullptr;
}

TEST(Memory, ALargeBlockStandsForItselfAndASmallOneForManyLikeIt) {
  const Profile profile = with_blocks({{"main;large", 1'000'000}, {"main;small", 1}});
  const MemoryReport report = memory_report(profile, MemoryView::kAllocated);
  EXPECT_NEAR(row_of(profile, report, "large")->self.bytes, 1e6, 1);
  EXPECT_NEAR(row_of(profile, report, "large")->self.blocks, 1, 1e-6);
  EXPECT_NEAR(row_of(profile, report, "small")->self.bytes, 1000, 1);
  EXPECT_NEAR(row_of(profile, report, "small")->self.blocks, 1000, 1);
  EXPECT_NEAR(row_of(profile, report, "main")->total.bytes, 1'001'000, 2);
  EXPECT_EQ(row_of(profile, report, "main")->self.samples, 0U);
}

TEST(Memory, LiveIsWhatWasNeverFreedAndPeakWhatLivedWhenMostDid) {
  const Profile profile = with_blocks({{"main;early", 100'000, 10, 20},
                                       {"main;peak", 300'000, 30, 50},
                                       {"main;peak", 200'000, 40, 60},
                                       {"main;leak", 50'000, 45},
                                       {"main;late", 10'000, 70}});
  EXPECT_EQ(peak_time_ns(profile), 45);
  const MemoryReport peak = memory_report(profile, MemoryView::kPeak);
  EXPECT_NEAR(peak.all.bytes, 550'000, 1);
  EXPECT_EQ(row_of(profile, peak, "early"), nullptr);
  const MemoryReport live = memory_report(profile, MemoryView::kLive);
  EXPECT_NEAR(live.all.bytes, 60'000, 1);
  EXPECT_EQ(row_of(profile, live, "peak"), nullptr);
  EXPECT_NEAR(row_of(profile, live, "leak")->self.bytes, 50'000, 1);
}

// A program in whose memory there are always as many blocks of a byte, each in the place of the oldest one: samples of
// it, and how many bytes are alive.
Profile with_turnover(std::size_t alive, std::size_t allocated, std::uint64_t seed) {
  Profile profile = with_blocks({});
  const StackId stack = draw_stack(profile, "main;churn");
  std::uint64_t random = seed;
  for (std::size_t i = blocks_to_sample(random, 1, kDistance); i < allocated;
       i += blocks_to_sample(random, 1, kDistance)) {
    AllocationRow row;
    row.number = i;
    row.time_ns = static_cast<std::int64_t>(i);
    row.thread = ThreadId{0};
    row.stack = stack;
    row.size = row.chance_bytes = 1;
    if (i + alive < allocated) row.freed_ns = static_cast<std::int64_t>(i + alive);
    profile.allocations.push_back(row);
  }
  return profile;
}

TEST(Memory, TheIntervalOfBlocksThatAreNearlyAllSamplesHoldsTheTruth) {
  // GIVEN programs with 20 blocks of one size, of 3.6 times the distance and the like
  for (const std::uint64_t size : {1000U, 2000U, 3000U, 3600U, 4500U}) {
    int below = 0;
    constexpr int kTrials = 2000;
    std::uint64_t random = size;
    for (int trial = 0; trial < kTrials; ++trial) {
      MemoryEstimate sum;
      AllocationRow row;
      row.size = row.chance_bytes = size;
      for (int i = 0; i < 20; ++i)
        if (uniform_random(random) < chance_of_sample(size, kDistance)) sum.add(row, kDistance);
      below += sum.interval().high < 20.0 * static_cast<double>(size) ? 1 : 0;
    }
    // THEN no more than one of 20 intervals ends before what there was
    EXPECT_LE(below, kTrials / 20) << size;
  }
  // AND one of a block that hardly could have been missed has no room for another one
  MemoryEstimate sure;
  AllocationRow row;
  row.size = row.chance_bytes = 20 * kDistance;
  sure.add(row, kDistance);
  EXPECT_NEAR(sure.interval().high, 20'000 + 3'689, 1);
}

TEST(Memory, TheIntervalOfAPeakAllowsForItsBeingTheHighestOfManyEstimates) {
  // GIVEN programs that always have as much, of which some 3, 16 and 100 samples tell
  int held = 0, held_by_function = 0;
  constexpr int kTrials = 100;
  double sum = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const double truth = std::array{3'000, 16'000, 100'000}[static_cast<std::size_t>(trial) % 3];
    const Profile profile =
        with_turnover(static_cast<std::size_t>(truth), 3'000'000, static_cast<std::uint64_t>(trial) * 77 + 1);
    // WHEN the peak is asked for, which is when chance made the estimate highest
    const MemoryReport peak = memory_report(profile, MemoryView::kPeak);
    sum += peak.all.bytes / truth / kTrials;
    // THEN the interval has what there was, as often as it says
    const Interval interval = peak.all.interval(), of_function = row_of(profile, peak, "churn")->self.interval();
    held += interval.low <= truth && truth <= interval.high ? 1 : 0;
    held_by_function += of_function.low <= truth && truth <= of_function.high ? 1 : 0;
    EXPECT_GT(peak.all.looks, 20U);
    EXPECT_EQ(memory_by_type(profile, MemoryView::kPeak)[0].all.interval().low, interval.low);
    EXPECT_EQ(memory_by_domain(profile, MemoryView::kPeak)[0].all.interval().low, interval.low);
  }
  EXPECT_GT(sum, 1.3);  // without that, hardly one would
  EXPECT_GE(held, kTrials * 93 / 100);
  EXPECT_EQ(held, held_by_function);
}

TEST(Memory, APeakThatNoOtherTimeComesNearIsAsSureAsAnySum) {
  // GIVEN a program that has had far more once, and else little that comes and goes
  std::vector<DrawnBlock> blocks;
  for (int i = 0; i < 300; ++i) blocks.push_back({"main;once", 1, 1000 + i, 2000});
  for (int i = 0; i < 300; ++i) blocks.push_back({"main;often", 1, 10 * i, 10 * i + 5});
  const Profile profile = with_blocks(blocks);
  // THEN the peak is what it is when that time is asked for
  MemoryQuestion then = MemoryView::kLive;
  then.at_ns = peak_time_ns(profile);
  const Interval peak = memory_report(profile, MemoryView::kPeak).all.interval();
  const Interval live = memory_report(profile, then).all.interval();
  EXPECT_NEAR(peak.low, live.low, 0.12 * live.low);
  EXPECT_EQ(peak.high, live.high);
  EXPECT_LT(peak_of(profile).looks, 100U);  // of 300
  // AND of a function, and in a file, it is known of how many estimates the peak is the highest
  Profile part = with_turnover(16'000, 1'000'000, 5);
  const std::uint64_t looks = peak_of(part).looks;
  EXPECT_GT(looks, 100U);
  filter(part, {.function = "churn"});
  EXPECT_EQ(peak_of(part).looks, looks);
  EXPECT_EQ(peak_of(read_again(part)).looks, looks);
}

TEST(Memory, ThePeakOfAFunctionIsWhatItHadWhenMostWasAlive) {
  // GIVEN one that has most before the others have it
  Profile profile =
      with_blocks({{"main;early", 200'000, 10, 20}, {"main;early", 30'000, 25}, {"main;most", 300'000, 30, 50}});
  // WHEN it alone is asked for
  filter(profile, {.function = "early"});
  // THEN it is told what it had at the peak of all
  EXPECT_EQ(peak_time_ns(profile), 30);
  EXPECT_NEAR(memory_report(profile, MemoryView::kPeak).all.bytes, 30'000, 1);
  // AND so it is when it has been in a file
  EXPECT_EQ(peak_time_ns(read_again(profile)), 30);
  // AND when most was alive of a stretch of time is not known any more: the rows of the others are gone
  filter(profile, {.from_ns = 5, .to_ns = 28});
  EXPECT_FALSE(check_question(profile, MemoryView::kPeak).ok());
  EXPECT_FALSE(check_question(read_again(profile), MemoryView::kPeak).ok());
  filter(profile, {.function = "early"});
  EXPECT_FALSE(check_question(profile, MemoryView::kPeak).ok());
}

TEST(Memory, ThePeakOfAFunctionInATimeIsThatOfAllThatWasAllocatedThen) {
  // GIVEN a function that has most of a time when the others have less
  const std::vector<DrawnBlock> blocks = {
      {"main;early", 200'000, 10, 20}, {"main;early", 30'000, 25}, {"main;most", 300'000, 30, 50}};
  Profile at_once = with_blocks(blocks), one_by_one = with_blocks(blocks);
  // WHEN both are asked for at once, and the time first THEN it is the same
  filter(at_once, {.function = "early", .from_ns = 5, .to_ns = 40});
  filter(one_by_one, {.from_ns = 5, .to_ns = 40});
  filter(one_by_one, {.function = "early"});
  for (const Profile* profile : {&at_once, &one_by_one}) {
    EXPECT_TRUE(check_question(*profile, MemoryView::kPeak).ok());
    EXPECT_EQ(peak_time_ns(*profile), 30);
    EXPECT_NEAR(memory_report(*profile, MemoryView::kPeak).all.bytes, 30'000, 1);
  }
}

TEST(Memory, WhatIsNotKnownOfAnExactPeakIsNotTold) {
  const auto exact = [] {
    Profile profile = with_blocks({{"main;early", 100, 10, 20}, {"main;most", 300, 30, 50}});
    profile.is_exact = true;
    profile.allocation_distance = 0;
    profile.peak_ns = 30;
    profile.peak_allocations.assign(1, profile.allocations[1]);
    return profile;
  };
  // Of a function it is, of a stretch of time it is not.
  Profile of_function = exact();
  filter(of_function, {.function = "early"});
  EXPECT_TRUE(check_question(of_function, MemoryView::kPeak).ok());
  EXPECT_EQ(memory_report(of_function, MemoryView::kPeak).all.bytes, 0);
  Profile of_times = exact();
  filter(of_times, {.from_ns = 5});
  EXPECT_FALSE(check_question(of_times, MemoryView::kPeak).ok());
  // So it is when it has been in a file.
  Profile again = read_again(of_times);
  EXPECT_FALSE(check_question(again, MemoryView::kPeak).ok());
  EXPECT_TRUE(check_question(of_times, MemoryView::kAllocated).ok());
}

TEST(Memory, RecursionCountsOnce) {
  const Profile profile = with_blocks({{"main;f;f;f", 1'000'000}});
  EXPECT_NEAR(row_of(profile, memory_report(profile, MemoryView::kAllocated), "f")->total.bytes, 1e6, 1);
}

TEST(Memory, TheIntervalHoldsTheTruthAsOftenAsItSays) {
  // GIVEN programs that allocate blocks of mixed sizes, each sampled as the allocator would, 2000 times
  std::uint64_t random = 7;
  for (const int blocks : {30, 300, 3000}) {
    int held = 0;
    double sum = 0;
    double truth = 0;
    constexpr int kTrials = 2000;
    for (int trial = 0; trial < kTrials; ++trial) {
      MemoryEstimate estimate;
      truth = 0;
      std::int64_t left = distance_to_sample(random, kDistance);
      for (int i = 0; i < blocks; ++i) {
        AllocationRow row;
        row.size = row.chance_bytes = 50 + static_cast<std::uint64_t>(i) % 20 * 60;
        truth += static_cast<double>(row.size);
        left -= static_cast<std::int64_t>(row.size);
        if (left > 0) continue;
        left = distance_to_sample(random, kDistance);
        estimate.add(row, kDistance);
      }
      const Interval interval = estimate.interval();
      held += interval.low <= truth && truth <= interval.high ? 1 : 0;
      sum += estimate.bytes;
    }
    // THEN the mean is right, and the interval held the truth in 93 % of trials or more
    EXPECT_NEAR(sum / kTrials / truth, 1, 0.02) << blocks;
    EXPECT_GE(held, kTrials * 93 / 100) << blocks;
    EXPECT_LT(held, kTrials) << "an interval that always holds says nothing";
  }
}

TEST(Memory, TheIntervalHoldsTheTruthWhereOnlyALargeBlockWasSeen) {
  // GIVEN a function that allocates a block which is sure to be sampled, and small ones that may not be
  constexpr std::uint64_t kLarge = 100 * kDistance;
  std::uint64_t random = 7;
  int held = 0;
  constexpr int kTrials = 2000;
  for (int trial = 0; trial < kTrials; ++trial) {
    MemoryEstimate estimate;
    AllocationRow large;
    large.size = large.chance_bytes = kLarge;
    estimate.add(large, kDistance);
    std::uint64_t truth = kLarge;
    std::int64_t left = distance_to_sample(random, kDistance);
    for (int i = 0; i < 30; ++i) {
      AllocationRow row;
      row.size = row.chance_bytes = kDistance / 20;
      truth += row.size;
      left -= static_cast<std::int64_t>(row.size);
      if (left > 0) continue;
      left = distance_to_sample(random, kDistance);
      estimate.add(row, kDistance);
    }
    const Interval interval = estimate.interval();
    held += interval.low <= static_cast<double>(truth) && static_cast<double>(truth) <= interval.high ? 1 : 0;
  }
  // THEN the interval has room for those that were not
  EXPECT_GE(held, kTrials * 93 / 100);
}

TEST(Memory, WhatNoSampleTellsOfMayBeThereAllTheSame) {
  // GIVEN a function whose blocks are all of one that it calls
  Profile profile = with_blocks({{"main;leaf", 1'000'000}});
  constexpr double kMost = 3.688879 * static_cast<double>(kDistance);  // is passed over once in forty times
  // THEN blocks of its own may have been passed over, as they may where there is no sample at all
  const MemoryReport report = memory_report(profile, MemoryView::kAllocated);
  EXPECT_NEAR(row_of(profile, report, "main")->self.interval().high, kMost, 1);
  profile.allocations.clear();
  EXPECT_NEAR(memory_report(profile, MemoryView::kLive).all.interval().high, kMost, 1);
  for (const LifetimeRow& row : lifetimes(profile)) EXPECT_NEAR(row.all.interval().high, kMost, 1);
  for (const MemoryMoment& moment : memory_over_time(profile, 2)) {
    EXPECT_NEAR(moment.alive.interval().high, kMost, 1);
    EXPECT_NEAR(moment.allocated.interval().high, kMost, 1);
    // but nothing of what was not recorded
    EXPECT_EQ(moment.alive_native.interval().high, 0);
  }
  profile.set_meta("native_memory", "yes");
  EXPECT_NEAR(memory_over_time(profile, 1)[0].alive_native.interval().high, kMost, 1);
  // AND where every block was recorded there is no more than was
  profile.allocation_distance = 0;
  EXPECT_EQ(memory_report(profile, MemoryView::kLive).all.interval().high, 0);
  EXPECT_EQ(memory_over_time(profile, 1)[0].alive.interval().high, 0);
}

TEST(Memory, LeaksAreOfAStretchOfTimeAndAliveAtItsEnd) {
  // GIVEN blocks from before a stretch of time, in it, freed in it, freed after it, and from after it
  const Profile profile = with_blocks({{"main;before", 10'000, 5},
                                       {"main;leak", 20'000, 15},
                                       {"main;done", 30'000, 16, 18},
                                       {"main;late_end", 40'000, 17, 90},
                                       {"main;after", 50'000, 60}});
  // WHEN what leaked in it is asked for THEN it is what was allocated in it and alive at its end
  MemoryQuestion leaks = MemoryView::kLeaks;
  leaks.from_ns = 10;
  leaks.at_ns = 50;
  EXPECT_NEAR(memory_report(profile, leaks).all.bytes, 60'000, 1);
  // and up to the end of the recording what was never freed
  leaks.at_ns = MemoryQuestion::kEnd;
  EXPECT_NEAR(memory_report(profile, leaks).all.bytes, 70'000, 1);
  // and alive at a time is whatever was allocated before
  MemoryQuestion alive = MemoryView::kLive;
  alive.at_ns = 17;
  EXPECT_NEAR(memory_report(profile, alive).all.bytes, 100'000, 1);
}

TEST(Memory, TemporaryIsWhatWasFreedSoon) {
  const Profile profile = with_blocks(
      {{"main;soon", 10'000, 0, 1'000'000}, {"main;later", 20'000, 0, 1'000'001}, {"main;never", 30'000, 0}});
  EXPECT_NEAR(memory_report(profile, MemoryView::kTemporary).all.bytes, 10'000, 1);
  MemoryQuestion longer = MemoryView::kTemporary;
  longer.within_ns = 2'000'000;
  EXPECT_NEAR(memory_report(profile, longer).all.bytes, 30'000, 1);
  // and every block has one lifetime
  std::vector<double> bytes;
  for (const LifetimeRow& row : lifetimes(profile)) bytes.push_back(std::round(row.all.bytes));
  EXPECT_EQ(bytes, (std::vector<double>{0, 10'000, 20'000, 0, 0, 0, 0, 30'000}));
}

TEST(Memory, WhatWasMovedIsNotFreedWhereThatIsKnown) {
  // GIVEN a log of three blocks, one of which realloc has moved
  Profile profile =
      with_blocks({{"main;freed", 10'000, 0, 500}, {"main;moved", 20'000, 0, 500}, {"main;never", 30'000}});
  profile.allocation_distance = 0;
  profile.is_exact = profile.has_events = true;
  profile.allocations[0].is_temporary = true;
  // WHEN lifetimes are asked for THEN what was freed so soon is what the view of it has, and the rest is by itself
  const std::vector<LifetimeRow> rows = lifetimes(profile);
  std::vector<double> bytes;
  for (const LifetimeRow& row : rows) bytes.push_back(row.all.bytes);
  EXPECT_EQ(bytes, (std::vector<double>{10'000, 0, 0, 0, 0, 0, 0, 20'000, 30'000}));
  EXPECT_TRUE(rows[7].is_moved);
  EXPECT_EQ(memory_report(profile, MemoryView::kTemporary).all.bytes, 10'000);
}

TEST(Memory, WhatWasMovedIsNotFreedInSamplesEither) {
  // GIVEN samples of three blocks, one of which realloc has moved: one is written with what became of it, of the others
  // that comes later
  Profile profile =
      with_blocks({{"main;freed", 10'000, 0, 500}, {"main;moved", 20'000, 0, 500}, {"main;never", 30'000}});
  profile.allocations[0].freed_ns = AllocationRow::kAlive;
  profile.allocations[1].is_moved = true;
  PlimEncoder encoder(1);
  std::string bytes = PlimEncoder::file_header() + encoder.encode(profile);
  profile.allocations.clear();
  profile.samples.clear();
  profile.releases.push_back({0, 500, {}});
  profile.releases.push_back({999, 500, {}, true});  // of an allocation that was lost
  bytes += encoder.encode(profile);
  // WHEN the file is read
  const Result<Profile> read = read_plim(bytes);
  ASSERT_TRUE(read.ok());
  // THEN what was moved is neither temporary nor freed soon, but by itself, and all together are what was allocated
  std::vector<double> sizes;
  for (const LifetimeRow& row : lifetimes(read.value())) sizes.push_back(std::round(row.all.bytes));
  EXPECT_EQ(sizes, (std::vector<double>{10'000, 0, 0, 0, 0, 0, 0, 20'000, 30'000}));
  EXPECT_EQ(std::round(memory_report(read.value(), MemoryView::kTemporary).all.bytes), 10'000);
  EXPECT_EQ(std::round(memory_report(read.value(), MemoryView::kAllocated).all.bytes), 60'000);
}

TEST(Memory, TypesAreTellingWhoMakesThem) {
  Profile profile = with_blocks({{"main;a", 10'000}, {"main;b", 30'000}, {"main;b", 15'000}, {"main;c", 17'000}});
  profile.allocations[0].type = profile.allocations[1].type = profile.strings.intern("dict");
  profile.allocations[3].domain = 1;
  const std::vector<TypeRow> rows = memory_by_type(profile, MemoryView::kAllocated);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(profile.strings[rows[0].type], "dict");
  EXPECT_NEAR(rows[0].all.bytes, 40'000, 1);
  EXPECT_EQ(rows[0].mostly, function_named(profile, "b"));
  EXPECT_NEAR(rows[0].mostly_bytes, 30'000, 1);
  EXPECT_TRUE(rows[1].type.is_none());
  EXPECT_FALSE(rows[1].is_object);
  EXPECT_NEAR(rows[1].all.bytes, 17'000, 1);
  EXPECT_TRUE(rows[2].is_object);
}

TEST(Memory, TypesAtAnExactPeakAreOfWhatLivesOn) {
  // GIVEN an exact recording, at whose peak of 300 a stack had 5 blocks; of these 2 live on, and their type is known;
  // so it is of one that came later, and of one of another stack; a third stack has nothing that lives on
  Profile profile = with_blocks({{"main;make", 200, 100}, {"main;make", 100, 400}, {"main;other", 70, 200}});
  profile.allocation_distance = 0;
  profile.is_exact = true;
  profile.allocations[0].blocks = 2;
  for (AllocationRow& row : profile.allocations) row.type = profile.strings.intern("app.Session");
  const auto put = [&](const char* stack, std::uint64_t blocks, std::uint64_t size) {
    AllocationRow row;
    row.thread = ThreadId{0};
    row.stack = draw_stack(profile, stack);
    row.blocks = blocks;
    row.size = size;
    profile.peak_allocations.push_back(row);
  };
  put("main;make", 5, 500);
  put("main;other", 1, 70);
  put("main;third", 1, 30);
  set_peak(profile, Peak{300});
  // WHEN what was alive at the peak is told by types THEN that is known of what lives on, and the sum is as ever
  const std::vector<TypeRow> rows = memory_by_type(profile, MemoryView::kPeak);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_TRUE(rows[0].type.is_none());
  EXPECT_EQ(rows[0].all.bytes, 300 + 30);
  EXPECT_EQ(rows[0].all.blocks, 3 + 1);
  EXPECT_EQ(profile.strings[rows[1].type], "app.Session");
  EXPECT_EQ(rows[1].all.bytes, 200 + 70);
  EXPECT_EQ(rows[1].all.blocks, 2 + 1);
}

TEST(Memory, OverTimeEachMomentHasWhatIsAliveThen) {
  // GIVEN a recording of 100 ns, memory that comes and goes, and the size of the process
  Profile profile = with_blocks({{"main;a", 10'000, 10, 60}, {"main;b", 30'000, 40, 70}, {"main;c", 15'000, 80}});
  profile.end_ns = 100;
  profile.counters.push_back({ProcessId{0}, "rss", "bytes", {30, 90}, {1000, 2000}});
  // WHEN four moments are asked for, at 25, 50, 75 and 100 ns
  const std::vector<MemoryMoment> moments = memory_over_time(profile, 4);
  // THEN each says what is alive, what came since the one before, and who has most
  std::vector<double> alive;
  std::vector<double> allocated;
  std::vector<std::int64_t> rss;
  for (const MemoryMoment& at : moments) {
    alive.push_back(std::round(at.alive.bytes));
    allocated.push_back(std::round(at.allocated.bytes));
    rss.push_back(at.rss_bytes);
  }
  EXPECT_EQ(alive, (std::vector<double>{10'000, 40'000, 0, 15'000}));
  EXPECT_EQ(allocated, (std::vector<double>{10'000, 30'000, 0, 15'000}));
  EXPECT_EQ(rss, (std::vector<std::int64_t>{0, 1000, 1000, 2000}));
  EXPECT_EQ(moments[1].mostly, function_named(profile, "b"));
  EXPECT_TRUE(moments[2].mostly.is_none());
  // AND in a part of it, what was allocated before is alive, too
  const std::vector<MemoryMoment> part =
      memory_over_time(profile, 2, {.from_ns = moments[1].at_ns, .to_ns = moments[3].at_ns});
  ASSERT_EQ(part.size(), 2U);
  for (std::size_t i = 0; i < part.size(); ++i) {
    EXPECT_EQ(part[i].at_ns, moments[i + 2].at_ns);
    EXPECT_EQ(part[i].alive.bytes, moments[i + 2].alive.bytes);
  }
  const auto by_function = alive_over_time(profile, 4);
  EXPECT_NEAR(by_function[function_named(profile, "a").index()][1], 10'000, 1);
  EXPECT_EQ(by_function[function_named(profile, "a").index()][2], 0);
}

TEST(Memory, OverTimeProcessesAddUpWhileTheyRun) {
  // GIVEN two processes, the second of which ends at 60
  Profile profile = testing::draw_profile("main 1 @100\nworker@7 | run 1 @60");
  profile.counters.push_back({ProcessId{0}, "rss", "bytes", {10'000'000}, {1000}});
  profile.counters.push_back({ProcessId{1}, "rss", "bytes", {40'000'000, 50'000'000}, {500, 700}});
  std::vector<std::int64_t> rss;
  for (const MemoryMoment& at : memory_over_time(profile, 4)) rss.push_back(at.rss_bytes);
  EXPECT_EQ(rss, (std::vector<std::int64_t>{1000, 1700, 1000, 1000}));
}

TEST(Memory, WhatAProcessHadIsGoneWhenItHasEnded) {
  // GIVEN a program that ends at 100, and processes that it made one after the other, each with 10 kB it never freed
  Profile profile = with_blocks({{"main;own", 5'000, 1}});
  testing::draw_sample(profile, "main 1 @100");
  for (const std::int64_t end : {30, 60}) {
    AllocationRow row = profile.allocations[0];
    row.thread = draw_thread(profile, "child@" + std::to_string(end));
    row.time_ns = end * 1'000'000 - 10'000'000;
    row.stack = draw_stack(profile, "main;child");
    row.size = row.chance_bytes = 10'000;
    profile.threads[row.thread.index()].end_ns = end * 1'000'000;
    profile.allocations.push_back(row);
  }
  profile.end_ns = 100'000'000;
  const auto bytes_of = [&](MemoryQuestion question) { return std::round(memory_report(profile, question).all.bytes); };
  const auto at = [](MemoryView view, std::int64_t at_ns) {
    MemoryQuestion question = view;
    question.at_ns = at_ns;
    return question;
  };
  // THEN never more was alive than what the program and one of them had
  EXPECT_EQ(peak_time_ns(profile), 20'000'000);
  EXPECT_NEAR(bytes_of(MemoryView::kPeak), 15'000, 50);
  EXPECT_NEAR(bytes_of(at(MemoryView::kLive, 55'000'000)), 15'000, 50);
  EXPECT_NEAR(bytes_of(at(MemoryView::kLive, 100'000'000)), 5'000, 50);
  EXPECT_NEAR(bytes_of(at(MemoryView::kLeaks, 70'000'000)), 5'000, 50);
  std::vector<double> alive;
  for (const MemoryMoment& moment : memory_over_time(profile, 4))
    alive.push_back(std::round(moment.alive.bytes / 1000));
  EXPECT_EQ(alive, (std::vector<double>{15, 15, 5, 5}));
  EXPECT_EQ(alive_over_time(profile, 4)[function_named(profile, "child").index()][3], 0);
  // AND what none of them had freed is told
  EXPECT_NEAR(bytes_of(MemoryView::kLive), 25'000, 100);
  EXPECT_NEAR(bytes_of(MemoryView::kLeaks), 25'000, 100);
  // AND of processes whose files are written now and then it is not taken for their end that one was a little later
  profile.complete = false;
  EXPECT_NEAR(bytes_of(at(MemoryView::kLive, 100'000'000)), 25'000, 100);
}

// ---- in the file ----

TEST(Memory, AFileHoldsAllocationsAndWhatBecameOfThem) {
  Profile profile = with_blocks({{"main;a", 100'000, 10, 20}, {"main;b", 7, 30}, {"-", 1, 35, 36}});
  profile.allocations[1].type = profile.strings.intern("dict");
  profile.allocations[1].chance_bytes = 16;
  profile.allocations[2].domain = 1;
  PlimEncoder encoder(1);
  const auto read = read_plim(PlimEncoder::file_header() + encoder.encode(profile));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().allocation_distance, kDistance);
  ASSERT_EQ(read.value().allocations.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    AllocationRow expected = profile.allocations[i];
    AllocationRow found = read.value().allocations[i];
    EXPECT_EQ(read.value().strings[found.type], profile.strings[expected.type]);
    found.type = expected.type = {};
    EXPECT_EQ(found, expected) << i;
  }
}

TEST(Memory, AFileTellsABlocksEndFromItsBeginning) {
  // GIVEN a file whose samples have times in units of 10 us, and a block that lived for 2 us
  PlimEncoder encoder(10'000);
  const auto read =
      read_plim(PlimEncoder::file_header() + encoder.encode(with_blocks({{"main;a", 1'000'000, 1'000, 3'000}})));
  // THEN there was a time when it was alive
  ASSERT_TRUE(read.ok());
  EXPECT_NEAR(memory_report(read.value(), MemoryView::kPeak).all.bytes, 1e6, 1);
}

TEST(Memory, AFileHoldsTheTagsOfAllocations) {
  // GIVEN three allocations, two of them under a tag
  Profile profile = with_blocks({{"main;a", 100, 10}, {"main;b", 200, 20}, {"main;c", 300, 30}});
  const TagSetId tea = profile.tag_sets.intern({{profile.strings.intern("drink"), profile.strings.intern("tea")}});
  profile.allocations[0].tags = profile.allocations[2].tags = tea;
  // WHEN they are written, read, and those with the tag chosen
  PlimEncoder encoder(1);
  auto read = read_plim(PlimEncoder::file_header() + encoder.encode(profile));
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read.value().allocations[1].tags.is_none());
  Filter tagged;
  tagged.tags = {{"drink", "t*"}};
  filter(read.value(), tagged);
  // THEN they are left
  ASSERT_EQ(read.value().allocations.size(), 2U);
  EXPECT_EQ(read.value().allocations[0].size, 100U);
  EXPECT_EQ(read.value().allocations[1].size, 300U);
}

TEST(Memory, AFileSaysThatAllocationsWereSampledEvenIfNoneWas) {
  PlimEncoder encoder(1);
  const auto read = read_plim(PlimEncoder::file_header() + encoder.encode(with_blocks({})));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().allocation_distance, kDistance);
  EXPECT_TRUE(read.value().allocations.empty());
}

TEST(Memory, AReleaseMayComeChunksLater) {
  // GIVEN a recording that writes two blocks, forgets them, and later writes what became of them
  Profile profile = with_blocks({{"main;a", 100, 10}, {"main;b", 200, 20}});
  PlimEncoder encoder(1);
  std::string bytes = PlimEncoder::file_header() + encoder.encode(profile);
  profile.allocations.clear();
  profile.samples.clear();
  profile.releases.push_back({3, 50, {}});
  profile.releases.push_back({0, AllocationRow::kAlive, profile.strings.intern("list")});
  profile.releases.push_back({999, 50, {}});  // of an allocation that was lost
  bytes += encoder.encode(profile);
  const auto read = read_plim(bytes);
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read.value().allocations.size(), 2U);
  EXPECT_EQ(read.value().allocations[0].freed_ns, AllocationRow::kAlive);
  EXPECT_EQ(read.value().strings[read.value().allocations[0].type], "list");
  EXPECT_EQ(read.value().allocations[1].freed_ns, 50);
}

}  // namespace
}  // namespace plimsoll::profile
