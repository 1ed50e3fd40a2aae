#include "alloc/sampled_blocks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "base/random.h"

namespace plimsoll::alloc {
namespace {

TEST(SampledBlocks, SmallOnesLiveInSlotsOfTheirOwn) {
  SampledBlocks blocks(64);
  char elsewhere = 0;
  EXPECT_FALSE(blocks.may_be_sampled(&elsewhere));
  EXPECT_FALSE(blocks.is_small(nullptr));
  // WHEN two are placed and written to, to their ends
  auto* a = static_cast<char*>(blocks.place({1, 512, 7}));
  auto* b = static_cast<char*>(blocks.place({2, 100, 7}));
  ASSERT_NE(a, nullptr);
  ASSERT_NE(b, nullptr);
  std::memset(a, 'a', 512);
  std::memset(b, 'b', 512);
  // THEN both are known, and neither has changed the other
  EXPECT_TRUE(blocks.is_small(a));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a) % 16, 0U);
  EXPECT_EQ(blocks.find(a)->number, 1U);
  EXPECT_EQ(blocks.find(b)->size, 100U);
  EXPECT_EQ(a[511], 'a');
  EXPECT_EQ(blocks.living(), 2U);
}

TEST(SampledBlocks, ASlotIsUsedAgainAndTheRegionMayBeFull) {
  SampledBlocks blocks(4);
  std::vector<void*> at;
  for (std::uint64_t i = 0; i < 4; ++i) at.push_back(blocks.place({i, 16, 1}));
  EXPECT_EQ(blocks.place({9, 16, 1}), nullptr);
  blocks.forget(at[2]);
  EXPECT_EQ(blocks.place({9, 16, 1}), at[2]);
  EXPECT_EQ(blocks.find(at[2])->number, 9U);
  EXPECT_EQ(blocks.place({9, 513, 1}), nullptr) << "not a small block";
}

TEST(SampledBlocks, LargeOnesAreKnownByTheirAddress) {
  SampledBlocks blocks(4);
  std::vector<char> large(1000);
  ASSERT_TRUE(blocks.track(large.data(), {5, 1000, 1}));
  EXPECT_TRUE(blocks.may_be_large(large.data()));
  EXPECT_FALSE(blocks.is_small(large.data()));
  EXPECT_EQ(blocks.find(large.data())->number, 5U);
  EXPECT_FALSE(blocks.find(large.data() + 16).has_value());
  blocks.forget(large.data());
  EXPECT_FALSE(blocks.may_be_large(large.data()));
  EXPECT_FALSE(blocks.find(large.data()).has_value());
}

TEST(SampledBlocks, ARandomLifeAgreesWithAMap) {
  SampledBlocks blocks(200);
  std::map<const void*, std::uint64_t> model;
  std::vector<std::array<char, 16>> places(500);
  std::uint64_t random = 42;
  for (std::uint64_t number = 0; number < 50'000; ++number) {
    if (next_random(random) % 2 == 0 && !model.empty()) {
      auto at = model.lower_bound(places.data() + next_random(random) % places.size());
      if (at == model.end()) at = model.begin();
      ASSERT_TRUE(blocks.may_be_sampled(at->first));
      ASSERT_EQ(blocks.find(at->first)->number, at->second);
      blocks.forget(at->first);
      model.erase(at);
    } else if (next_random(random) % 2 == 0) {
      void* at = blocks.place({number, 8, 1});
      ASSERT_TRUE(at == nullptr || model.emplace(at, number).second);
    } else {
      const void* at = places.data() + next_random(random) % places.size();
      ASSERT_TRUE(blocks.track(at, {number, 8, 1}));
      model[at] = number;
    }
    ASSERT_EQ(blocks.living(), model.size());
  }
  std::size_t seen = 0;
  blocks.for_each([&](const void* at, const SampledBlock& block) {
    ++seen;
    EXPECT_EQ(model[at], block.number);
  });
  EXPECT_EQ(seen, model.size());
}

}  // namespace
}  // namespace plimsoll::alloc
