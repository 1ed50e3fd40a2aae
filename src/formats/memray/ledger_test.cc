#include "formats/memray/ledger.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>

namespace plimsoll::formats::memray {
namespace {

const Site kMain{ThreadId{0}, StackId{0}, 0};
const Site kOther{ThreadId{0}, StackId{1}, 0};

// Rows as "stack birth-end blocks bytes", with "~" for temporary ones, ordered by text.
std::multiset<std::string> rows(const profile::AllocationTable& table) {
  std::multiset<std::string> result;
  for (const profile::AllocationRow& row : table) {
    const std::string end = row.freed_ns == profile::AllocationRow::kAlive ? "" : std::to_string(row.freed_ns);
    result.insert(std::to_string(row.stack.index()) + " " + std::to_string(row.time_ns) + "-" + end + " " +
                  std::to_string(row.blocks) + " " + std::to_string(row.size) + (row.is_temporary ? " ~" : ""));
  }
  return result;
}
using Rows = std::multiset<std::string>;

TEST(Ledger, CountsBlocksOfOneFateTogether) {
  // GIVEN three blocks of one stack born at 1, of which two end at 2
  Ledger ledger;
  for (const std::uint64_t address : {8U, 16U, 24U}) ledger.allocate(kMain, address, 100, 1);
  ledger.free(8, 2);
  ledger.free(16, 2);
  profile::Profile profile;
  ledger.finish(profile, 10);
  // THEN they are two rows, and the peak has all three
  EXPECT_EQ(rows(profile.allocations), (Rows{"0 1-2 2 200", "0 1- 1 100"}));
  EXPECT_EQ(rows(profile.peak_allocations), (Rows{"0 1- 3 300"}));
  EXPECT_TRUE(profile.is_exact);
  EXPECT_EQ(profile.peak_ns, 1);
}

TEST(Ledger, ABlockThatEndsBeforeItsStackHasAnotherIsTemporary) {
  Ledger ledger;
  ledger.allocate(kMain, 8, 10, 1);
  ledger.allocate(kOther, 16, 20, 1);  // of another stack
  ledger.free(8, 2);
  ledger.allocate(kMain, 8, 10, 3);
  ledger.allocate(kMain, 24, 10, 3);
  ledger.free(8, 4);
  profile::Profile profile;
  ledger.finish(profile, 10);
  EXPECT_EQ(rows(profile.allocations), (Rows{"0 1-2 1 10 ~", "0 3-4 1 10", "0 3- 1 10", "1 1- 1 20"}));
}

TEST(Ledger, WhatIsFreedUnseenGivesItsAddressAgain) {
  Ledger ledger;
  ledger.free(8, 1);  // was there before
  ledger.allocate(kMain, 8, 10, 2);
  ledger.allocate(kMain, 8, 30, 3);
  profile::Profile profile;
  ledger.finish(profile, 10);
  EXPECT_EQ(rows(profile.allocations), (Rows{"0 2-3 1 10 ~", "0 3- 1 30"}));
}

TEST(Ledger, MappingsAreTakenBackInParts) {
  // GIVEN a mapping of 1000 bytes at 1000, and one of 500 behind it
  Ledger ledger;
  ledger.map(kMain, 1000, 1000, 1);
  ledger.map(kOther, 2000, 500, 1);
  // WHEN a hole is made in the first, and then all from 1900 on is taken back
  ledger.unmap(1200, 100, 2);
  ledger.unmap(1900, 10'000, 3);
  ledger.unmap(5000, UINT64_MAX, 4);  // nothing
  profile::Profile profile;
  ledger.finish(profile, 10);
  // THEN bytes add up: 200 and 600 are left of the first, which is one block
  EXPECT_EQ(rows(profile.allocations), (Rows{"0 1-2 0 100 ~", "0 1-3 0 100 ~", "0 1- 1 800", "1 1-3 1 500 ~"}));
  EXPECT_EQ(rows(profile.peak_allocations), (Rows{"0 1- 1 1000", "1 1- 1 500"}));
}

TEST(Ledger, AMappingWithAHoleIsOneBlockUntilAllOfItIsGone) {
  // GIVEN a mapping whose middle, end and beginning are taken back, one after the other
  Ledger ledger;
  ledger.map(kMain, 1000, 300, 1);
  ledger.unmap(1100, 100, 2);
  ledger.unmap(1200, 100, 3);
  ledger.unmap(1000, 100, 4);
  // WHEN more is allocated there than ever before
  ledger.map(kMain, 5000, 400, 5);
  profile::Profile profile;
  ledger.finish(profile, 10);
  // THEN one block has gone, and the peak has the other
  EXPECT_EQ(rows(profile.allocations), (Rows{"0 1-2 0 100 ~", "0 1-3 0 100 ~", "0 1-4 1 100 ~", "0 5- 1 400"}));
  EXPECT_EQ(rows(profile.peak_allocations), (Rows{"0 5- 1 400"}));
}

// What a drawn program leaves, booked in the plainest way.
class Naive {
 public:
  void allocate(const Site& site, std::uint64_t address, std::uint64_t size) {
    alive_[address] = {site.stack.index(), size};
    std::uint64_t now = 0;
    for (const auto& [at, block] : alive_) now += block.second;
    if (now <= most) return;
    most = now;
    peak.clear();
    for (const auto& [at, block] : alive_) peak[block.first] += block.second;
  }
  bool free(std::uint64_t address) { return alive_.erase(address) != 0; }

  std::uint64_t most = 0;
  std::map<std::size_t, std::uint64_t> peak;  // bytes by stack

 private:
  std::map<std::uint64_t, std::pair<std::size_t, std::uint64_t>> alive_;
};

TEST(Ledger, TheFirstHighestPeakIsKeptByStack) {
  std::mt19937_64 random(7);
  for (int program = 0; program < 200; ++program) {
    // GIVEN programs of blocks that come and go
    Ledger ledger;
    Naive naive;
    for (int step = 0; step < 60; ++step) {
      const std::uint64_t address = 8 * (1 + random() % 12);
      if (random() % 2 == 0) {
        naive.free(address);
        ledger.free(address, step);
      } else if (!naive.free(address)) {
        const Site& site = random() % 2 == 0 ? kMain : kOther;
        const std::uint64_t size = 1 + random() % 100;
        naive.allocate(site, address, size);
        ledger.allocate(site, address, size, step);
      } else {
        ledger.free(address, step);
      }
    }
    profile::Profile profile;
    ledger.finish(profile, 100);
    // THEN the peak is where most bytes were alive, stack by stack
    std::map<std::size_t, std::uint64_t> peak;
    for (const profile::AllocationRow& row : profile.peak_allocations)
      if (row.size != 0) peak[row.stack.index()] += row.size;
    EXPECT_EQ(peak, naive.peak) << "program " << program;
  }
}

}  // namespace
}  // namespace plimsoll::formats::memray
