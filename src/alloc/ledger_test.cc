#include "alloc/ledger.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <tuple>
#include <vector>

#include "alloc/block_map.h"

namespace plimsoll::alloc {
namespace {

using Kind = ExactChange;

// The books, with blocks at addresses of their own.
class LedgerTest : public ::testing::Test {
 protected:
  explicit LedgerTest(std::uint32_t first_stamp = 1) : ledger(clock, first_stamp) {}

  struct Block {
    void* at = nullptr;
    Ledger::Token token = 0;
  };
  Block allocate(std::uint32_t stack, std::size_t size) {
    void* at = reinterpret_cast<void*>(next_ += 16);
    return {at, ledger.allocated(stack, Domain::kObject, at, size)};
  }
  void free(const Block& block, Fate fate = Fate::kFreed) {
    const bool may_be_quick = ways == Ways::kQuick && fate == Fate::kFreed;
    if (may_be_quick && ledger.ended_quickly(block.token, block.at)) {
      ++quick_ends;
    } else if (may_be_quick && ledger.earlier_ended_quickly(block.token, block.at)) {
      ++earlier_quick_ends;
    } else {
      ledger.ended(block.token, block.at, fate);
    }
  }
  // Closes the epoch: {blocks, bytes} by kind, stack and epoch of birth, added up.
  using Sums = std::map<std::tuple<Kind, std::uint32_t, int>, std::pair<std::int64_t, std::int64_t>>;
  Sums close() {
    Sums sums;
    for (const ExactRow& row : ledger.close_epoch()) {
      auto& sum = sums[{row.change, row.stack, row.change == Kind::kPeak ? 0 : row.epoch}];
      sum.first += row.blocks;
      sum.second += row.bytes;
    }
    return sums;
  }

  // Compares what is told with a simple account of blocks that are allocated and freed at random.
  void draw_programs();

  std::atomic<std::int64_t> clock{7};
  Ledger ledger;
  enum class Ways { kOne, kQuick } ways = Ways::kOne;  // how blocks end: quickly where that may be
  int quick_ends = 0, earlier_quick_ends = 0;

 private:
  std::uintptr_t next_ = 0x100000;
};

TEST_F(LedgerTest, CountsWhatEachStackAllocatedAndFreed) {
  // GIVEN blocks of two stacks, small and large, of which some are freed out of order
  const Block small = allocate(1, 24);
  const Block other = allocate(1, 100);
  const Block large = allocate(2, 100'000);
  allocate(2, 3);
  allocate(2, 3);
  free(small);
  free(other, Fate::kMoved);
  free(large);
  // WHEN the epoch ends THEN the sums are those of the blocks
  Sums sums = close();
  EXPECT_EQ((sums[{Kind::kBorn, 1, 1}]), (std::pair<std::int64_t, std::int64_t>{2, 124}));
  EXPECT_EQ((sums[{Kind::kBorn, 2, 1}]), (std::pair<std::int64_t, std::int64_t>{3, 100'006}));
  EXPECT_EQ((sums[{Kind::kFreedAtOnce, 1, 1}]), (std::pair<std::int64_t, std::int64_t>{1, 24}));
  EXPECT_EQ((sums[{Kind::kFreed, 1, 1}]), (std::pair<std::int64_t, std::int64_t>{1, 100}));
  EXPECT_EQ((sums[{Kind::kFreedAtOnce, 2, 1}]), (std::pair<std::int64_t, std::int64_t>{1, 100'000}));
  EXPECT_EQ(ledger.live_bytes(), 6U);
}

TEST_F(LedgerTest, ABlockKeepsTheEpochThatItWasBornIn) {
  const Block first = allocate(1, 24);
  const Block large = allocate(1, 1000);
  close();
  free(first);
  free(large);
  Sums sums = close();
  EXPECT_EQ((sums[{Kind::kFreedAtOnce, 1, 1}]), (std::pair<std::int64_t, std::int64_t>{2, 1024}));
  EXPECT_FALSE(sums.contains({Kind::kBorn, 1, 2}));
  EXPECT_TRUE(close().empty());  // nothing has changed since
}

TEST_F(LedgerTest, WhatIsFreedLaterIsToldByEpochAndStackHoweverManyThereAre) {
  // GIVEN many stacks, with as many blocks from each of two epochs as their number is
  constexpr std::uint32_t kStacks = 300;
  std::vector<Block> blocks;
  for (int epoch = 1; epoch <= 2; ++epoch) {
    for (std::uint32_t round = 1; round <= kStacks; ++round)
      for (std::uint32_t stack = round; stack <= kStacks; ++stack) blocks.push_back(allocate(stack, 16));
    close();
  }
  // WHEN half of them are freed in the third, and half in the fourth, in turn
  std::array<Sums, 2> told;
  for (std::size_t half = 0; half < 2; ++half) {
    for (std::size_t i = half; i < blocks.size(); i += 2) free(blocks[i], Fate::kMoved);
    told[half] = close();
  }
  // THEN the two make all of each
  for (std::uint32_t stack = 1; stack <= kStacks; ++stack)
    for (int epoch = 1; epoch <= 2; ++epoch) {
      const auto one = told[0][{Kind::kFreed, stack, epoch}];
      const auto other = told[1][{Kind::kFreed, stack, epoch}];
      EXPECT_EQ(one.first + other.first, stack) << epoch;
      EXPECT_EQ(one.second + other.second, 16 * std::int64_t{stack}) << epoch;
    }
}

TEST_F(LedgerTest, WhatIsFreedLaterInARowIsToldLikewise) {
  // GIVEN four blocks of a site, from the epoch before
  ways = Ways::kQuick;
  std::vector<Block> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(allocate(1, 24));
  close();
  // WHEN they are freed in a row, the first of which shows the site, and the last had no other after it
  for (const Block& block : blocks) free(block);
  // THEN those between took the quick way, and all are told
  EXPECT_EQ(earlier_quick_ends, 2);
  EXPECT_EQ(ledger.live_bytes(), 0U);
  Sums sums = close();
  EXPECT_EQ((sums[{Kind::kFreed, 1, 1}]), (std::pair<std::int64_t, std::int64_t>{3, 72}));
  EXPECT_EQ((sums[{Kind::kFreedAtOnce, 1, 1}]), (std::pair<std::int64_t, std::int64_t>{1, 24}));
}

TEST_F(LedgerTest, ABlockIsTemporaryIfItsSiteHadNoOtherMeanwhile) {
  const Block first = allocate(1, 24);
  const Block second = allocate(1, 24);
  free(first);
  free(second);
  Sums sums = close();
  EXPECT_EQ((sums[{Kind::kFreed, 1, 1}].first), 1);
  EXPECT_EQ((sums[{Kind::kFreedAtOnce, 1, 1}].first), 1);
}

TEST_F(LedgerTest, KnowsWhatWasAliveAtThePeak) {
  // GIVEN a peak of two stacks, told of in parts, and a lower one after it
  const Block low = allocate(1, 100);
  Sums sums = close();
  EXPECT_EQ((sums[{Kind::kPeak, 1, 0}].second), 100);
  const Block high = allocate(2, 5000);
  clock = 9;
  free(low);
  allocate(1, 60);
  sums = close();
  // THEN the peak is told as changes: stack 1 had the same, stack 2 more
  EXPECT_FALSE(sums.contains({Kind::kPeak, 1, 0}));
  EXPECT_EQ((sums[{Kind::kPeak, 2, 0}]), (std::pair<std::int64_t, std::int64_t>{1, 5000}));
  EXPECT_EQ(ledger.peak_bytes(), 5100U);
  EXPECT_EQ(ledger.peak_ns(), 9);
  free(high);
  EXPECT_FALSE(close().contains({Kind::kPeak, 2, 0}));
}

void LedgerTest::draw_programs() {
  std::uint64_t random = 42;
  const auto draw = [&random](std::uint64_t below) {
    return ((random = random * 6364136223846793005U + 1) >> 33U) % below;
  };
  std::vector<std::pair<Block, std::pair<std::uint32_t, std::int64_t>>> alive;
  std::map<std::uint32_t, std::int64_t> live, at_peak, told_live, told_peak;
  std::int64_t total = 0;
  std::int64_t most = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (alive.empty() || draw(100) < 55) {
      const auto stack = static_cast<std::uint32_t>(1 + draw(20));
      const std::size_t size = draw(10) == 0 ? draw(5000) : draw(300);
      alive.push_back({allocate(stack, size), {stack, static_cast<std::int64_t>(size)}});
      live[stack] += static_cast<std::int64_t>(size);
      total += static_cast<std::int64_t>(size);
      if (total > most) {
        most = total;
        at_peak = live;
      }
    } else {
      std::swap(alive[draw(alive.size())], alive.back());
      free(alive.back().first);
      live[alive.back().second.first] -= alive.back().second.second;
      total -= alive.back().second.second;
      alive.pop_back();
    }
    if (i % 997 != 0) continue;
    for (const auto& [key, sum] : close()) {
      const auto [kind, stack, epoch] = key;
      if (kind == Kind::kPeak)
        told_peak[stack] += sum.second;
      else
        told_live[stack] += kind == Kind::kBorn ? sum.second : -sum.second;
    }
    // At the end of each epoch, what was told comes to the same.
    ASSERT_EQ(told_live, live);
    std::erase_if(told_peak, [](const auto& entry) { return entry.second == 0; });
    std::erase_if(at_peak, [](const auto& entry) { return entry.second == 0; });
    ASSERT_EQ(told_peak, at_peak);
    ASSERT_EQ(static_cast<std::int64_t>(ledger.live_bytes()), total);
  }
}

TEST_F(LedgerTest, DrawnProgramsAddUp) {
  // GIVEN books WHEN blocks are allocated and freed at random THEN what is told is the sum of that
  draw_programs();
}

TEST_F(LedgerTest, DrawnProgramsAddUpByQuickWaysToo) {
  ways = Ways::kQuick;
  draw_programs();
  EXPECT_GT(quick_ends, 100);
  EXPECT_GT(earlier_quick_ends, 0);
}

// Books after so many moments that their numbers are nearly used up.
class LateLedgerTest : public LedgerTest {
 protected:
  LateLedgerTest() : LedgerTest(~std::uint32_t{0} - 100) {}
};

TEST_F(LateLedgerTest, DrawnProgramsAddUpWhereMomentsAreNumberedAnew) {
  // GIVEN books that will run out of numbers WHEN there are more peaks than that THEN nothing of before is forgotten
  draw_programs();
}

TEST_F(LedgerTest, SitesOfAllStacksAllocatorsAndSizesAreTold) {
  // GIVEN blocks at the ends of what a site can be of
  for (const std::uint32_t stack : {1U, 0xffffU, 0x10000U, 0xfffffffU}) {
    for (const Domain domain : {Domain::kObject, Domain::kMmap}) {
      for (const std::size_t size :
           {std::size_t{0}, std::size_t{1}, Ledger::kLargestSmall, Ledger::kLargestSmall + 1}) {
        void* at = reinterpret_cast<void*>(std::uintptr_t{0x100000} + size * 16);
        const Ledger::Token token = ledger.allocated(stack, domain, at, size);
        // WHEN the books are asked THEN they say what was given out
        const Ledger::Facts facts = ledger.facts_of(token, at);
        EXPECT_EQ(facts.stack, stack);
        EXPECT_EQ(facts.domain, domain);
        EXPECT_EQ(facts.size, size);
        ledger.ended(token, at, Fate::kFreed);
      }
    }
  }
  EXPECT_EQ(ledger.live_bytes(), 0U);
}

TEST_F(LedgerTest, ABlockThatIsMovedLeavesItsAddressToOthers) {
  // GIVEN large blocks that are about to be moved, and one that is given the address of the first meanwhile
  const Block moved = allocate(1, 5000);
  const Block stays = allocate(1, 6000);
  const std::size_t size = ledger.lift(moved.token, moved.at);
  const std::size_t other_size = ledger.lift(stays.token, stays.at);
  const Block next{moved.at, ledger.allocated(2, Domain::kObject, moved.at, 700)};
  // WHEN the first has been moved, the second has not THEN each is of its own size
  ledger.moved(moved.token, size);
  ledger.put_back(stays.token, stays.at, other_size);
  EXPECT_EQ(ledger.facts_of(next.token, next.at).size, 700U);
  EXPECT_EQ(ledger.facts_of(stays.token, stays.at).size, 6000U);
  EXPECT_EQ(ledger.live_bytes(), 6700U);
  free(next);
  free(stays);
  EXPECT_EQ(ledger.live_bytes(), 0U);
  Sums sums = close();
  EXPECT_EQ((sums[{Kind::kFreed, 1, 1}].second + sums[{Kind::kFreedAtOnce, 1, 1}].second), 11'000);
}

TEST(BlockMap, KnowsBlocksByTheirAddresses) {
  BlockMap map;
  ASSERT_TRUE(map.prepare().ok());
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<void*>(address); };
  EXPECT_TRUE(map.set(at(0x7f0000000010), 5));
  EXPECT_TRUE(map.set(at(0x10), 6));
  EXPECT_TRUE(map.set(at(0x18), 7));                 // a small block right behind another
  EXPECT_FALSE(map.set(at(0x1c), 7));                // no block's
  EXPECT_FALSE(map.set(at(0x1'0000'0000'0000), 7));  // beyond what a program has
  int seen = 0;
  map.for_each([&](const void*, BlockMap::Word) { ++seen; });
  EXPECT_EQ(seen, 3);
  EXPECT_EQ(map.get(at(0x18)), 7U);
  EXPECT_EQ(map.take(at(0x18)), 7U);
  EXPECT_EQ(map.take(at(0x18)), 0U);
  EXPECT_TRUE(map.set(at(0x28), 8));
  EXPECT_EQ(map.take(at(0x7f0000000010)), 5U);
  EXPECT_EQ(map.take(at(0x7f0000000010)), 0U);
  EXPECT_EQ(map.take(at(0x20)), 0U);
  map.clear();
  EXPECT_EQ(map.take(at(0x10)), 0U);
  EXPECT_EQ(map.get(at(0x28)), 0U);
}

}  // namespace
}  // namespace plimsoll::alloc
