// heap/pools_test.cc: pools of the small-object allocator in memory drawn by hand.
#include "heap/pools.h"

#include <gtest/gtest.h>

#include "memory/fake.h"
#include "os/process.h"

namespace plimsoll::heap {
namespace {

constexpr cpython::Version kNew{3, 13, 0}, kOld{3, 9, 0};
constexpr std::uint64_t kStart = 0x7f0000000000;

void put_pool(memory::FakeMemory& memory, std::uint64_t at, std::uint32_t block, std::uint32_t used,
              std::uint32_t arena, std::uint64_t size) {
  memory.put(Address{at}, std::uint64_t{used});
  for (const std::uint64_t word : {8U, 16U, 24U}) memory.put(Address{at + word}, std::uint64_t{0});
  memory.put(Address{at + 32}, arena);
  memory.put(Address{at + 36}, block / 16 - 1);
  memory.put(Address{at + 40}, static_cast<std::uint32_t>(48 + 2 * block));
  memory.put(Address{at + 44}, static_cast<std::uint32_t>(size - block));
}

Region region(std::uint64_t size, std::string name = "") { return {kStart, size, size, true, false, std::move(name)}; }

TEST(Pools, AreFoundByWhatStandsAtTheirBeginning) {
  // GIVEN memory with two pools of an arena, and something else between them
  memory::FakeMemory memory;
  put_pool(memory, kStart, 48, 3, 5, 16384);
  memory.put_bytes(Address{kStart + 16384}, std::string(48, '\x7f'));
  put_pool(memory, kStart + 2 * 16384, 512, 0, 5, 16384);
  // WHEN
  const GrowingArray<Pool> pools = find_pools(memory, std::vector{region(8 * 16384)}, kNew);
  // THEN
  ASSERT_EQ(pools.size(), 2U);
  EXPECT_EQ(pools[0].address, kStart);
  EXPECT_EQ(pools[0].block_bytes, 48U);
  EXPECT_EQ(pools[0].used, 3U);
  EXPECT_EQ(pools[0].capacity, (16384U - 48) / 48);
  EXPECT_EQ(pools[0].arena, 5U);
  EXPECT_EQ(pools[1].used, 0U) << "empty, and kept for later";
  EXPECT_EQ(pools[1].capacity, 31U);
}

TEST(Pools, OfOldVersionsAreOfFourKilobytes) {
  memory::FakeMemory memory;
  put_pool(memory, kStart + 4096, 64, 1, 0, 4096);
  EXPECT_EQ(find_pools(memory, std::vector{region(16384)}, kOld).size(), 1U);
  EXPECT_EQ(find_pools(memory, std::vector{region(16384)}, kNew).size(), 0U);
}

TEST(Pools, AreNotInFilesNorInFreeThreadedBuilds) {
  memory::FakeMemory memory;
  put_pool(memory, kStart, 48, 3, 5, 16384);
  EXPECT_EQ(find_pools(memory, std::vector{region(16384, "/lib/libc.so")}, kNew).size(), 0U);
  EXPECT_EQ(find_pools(memory, std::vector{region(16384, "[anon:cpython:pymalloc]")}, kNew).size(), 1U);
  const cpython::Version free{3, 13, 0, cpython::Version::Threading::kFree};
  EXPECT_EQ(find_pools(memory, std::vector{region(16384)}, free).size(), 0U);
}

TEST(Pools, WithNumbersThatCannotBeAreNone) {
  const auto is_pool = [](auto change) {
    memory::FakeMemory memory;
    put_pool(memory, kStart, 48, 3, 5, 16384);
    change(memory);
    return find_pools(memory, std::vector{region(16384)}, kNew).size() != 0;
  };
  const auto put = [&](std::uint64_t at, std::uint32_t value) {
    return is_pool([=](memory::FakeMemory& memory) { memory.put(Address{kStart + at}, value); });
  };
  EXPECT_TRUE(put(0, 3));
  EXPECT_FALSE(put(0, 1000)) << "more blocks in use than there are";
  EXPECT_FALSE(put(36, 32)) << "no such class of sizes";
  EXPECT_FALSE(put(40, 50)) << "not at the beginning of a block";
  EXPECT_FALSE(put(44, 16384)) << "the last block would be outside";
  EXPECT_FALSE(put(8, 0x10)) << "a free block elsewhere";
}

TEST(Regions, AreThoseOfTheProcessAndNotTheKernels) {
  os::ResidentMapping own{{kStart, kStart + 0x2000, 0, 0, true, true, false, false, "/x"}, 0x1000};
  os::ResidentMapping kernels{{0xffffffffff600000, 0xffffffffff601000, 0, 0, true, false, true, false, "[vsyscall]"},
                              0};
  const std::vector<Region> regions = regions_of(std::vector{own, kernels});
  ASSERT_EQ(regions.size(), 1U);
  EXPECT_EQ(regions[0].size, 0x2000U);
  EXPECT_EQ(regions[0].resident, 0x1000U);
  EXPECT_EQ(regions[0].name, "/x");
}

TEST(BlockCount, TellsSmallFromLargeAndFromWhatIsNoBlock) {
  const std::vector<Pool> pools{{kStart, 48, 3, 340, 0}};
  BlockCount count(pools, {});
  count.add(0x1000, {400, 0, 0});
  count.add(kStart + 48, {48, 64, 1000});
  count.add(kStart + 16384, {48, 0, 0});
  count.add(kStart + 0x100000, {1024, 0, 0});
  EXPECT_EQ(count.small(), 48U + 64);
  EXPECT_EQ(count.large(), 1000U + 1024);
  EXPECT_EQ(count.elsewhere(), 400U + 48);
}

TEST(BlockCount, TakesSmallObjectsBesidePoolsAndFilesForBlocksOfAnotherAllocator) {
  const std::vector<Pool> pools{{kStart, 48, 3, 340, 0}};
  const std::vector<Region> regions{{0x1000, 0x1000, 0x1000, true, false, "/usr/lib/libpython3.so"},
                                    {kStart, 0x10000, 0x10000, true, false, ""},
                                    {kStart + 0x20000, 0x1000, 0x1000, true, false, "/usr/lib/libx.so"}};
  BlockCount count(pools, regions);
  count.add(0x1000, {400, 0, 0});
  count.add(kStart + 48, {48, 0, 0});
  count.add(kStart + 16384, {64, 0, 0});
  count.add(kStart + 0x18000, {80, 0, 0});  // in memory that was mapped later
  EXPECT_EQ(count.small(), 48U);
  EXPECT_EQ(count.large(), 64U + 80);
  EXPECT_EQ(count.elsewhere(), 400U);
}

}  // namespace
}  // namespace plimsoll::heap
