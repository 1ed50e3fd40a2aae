#include "nursery/heap.h"

#include <gtest/gtest.h>

#include <fstream>

#include "nursery/testing.h"

namespace plimsoll::nursery {
namespace {

using namespace testing;

constexpr std::size_t kSmallNursery = std::size_t{64} << 10U;

// Allocates garbage of 1 to `most` bytes until `bytes` more have been allocated.
void allocate_garbage(Heap& heap, std::uint64_t bytes, std::size_t most) {
  const std::uint64_t until = heap.statistics().allocated_bytes + bytes;
  std::uint64_t state = 88172645463325252U;
  while (heap.statistics().allocated_bytes < until) {
    state ^= state << 13U;
    state ^= state >> 7U;
    state ^= state << 17U;
    ASSERT_NE(heap.allocate(kBytes, 8 + state % most), nullptr);
  }
}

TEST(Heap, NewObjectsAreZeroAndKnowWhatTheyAre) {
  const auto heap = heap_with({.nursery_bytes = kSmallNursery});
  for (int i = 0; i < 100'000; ++i) {
    auto* node = heap->allocate<Node>(kNode);
    ASSERT_EQ(node->type(), kNode);
    ASSERT_EQ(node->size(), sizeof(Node));
    ASSERT_EQ(node->name, 0U);
    for (const Node* field : node->to) ASSERT_EQ(field, nullptr);
    node->name = ~std::uint64_t{0};
    node->to[0] = node;
  }
  EXPECT_GT(heap->statistics().minor_collections, 50U);
}

TEST(Heap, AllocatedBytesAreExact) {
  const auto heap = heap_with({.nursery_bytes = kSmallNursery, .sampling = {1000}});
  std::uint64_t bytes = 0;
  for (std::size_t size = 8; size < 30'000; size += 8) bytes += heap->allocate(kBytes, size)->size();
  EXPECT_EQ(heap->statistics().allocated_bytes, bytes);
}

TEST(Heap, RootsFollowTheirObjects) {
  const auto heap = heap_with({.nursery_bytes = kSmallNursery});
  Root<Node> list(*heap);
  for (std::uint64_t name = 1; name <= 10'000; ++name) {
    auto* node = heap->allocate<Node>(kNode);
    node->name = name;
    heap->store(node, node->to[0], list.get());
    list = node;
  }
  std::uint64_t expected = 10'000;
  for (const Node* node = list.get(); node != nullptr; node = node->to[0]) ASSERT_EQ(node->name, expected--);
  EXPECT_EQ(expected, 0U);
}

TEST(Heap, WhatIsNotReachableIsGone) {
  const auto heap = heap_with({.nursery_bytes = kSmallNursery});
  {
    Root<Node> tree(*heap);
    for (int i = 0; i < 10'000; ++i) {
      auto* node = heap->allocate<Node>(kNode);
      heap->store(node, node->to[0], tree.get());
      tree = node;
    }
    ASSERT_TRUE(heap->collect_all());
    EXPECT_EQ(heap->statistics().old_bytes, 10'000 * sizeof(Node));
  }
  ASSERT_TRUE(heap->collect_all());
  EXPECT_EQ(heap->statistics().old_bytes, 0U);
}

TEST(Heap, OldObjectsMayReferToYoungOnes) {
  const auto heap = heap_with({.nursery_bytes = kSmallNursery});
  Root<Node> old(*heap, heap->allocate<Node>(kNode));
  ASSERT_TRUE(heap->collect_minor());
  for (std::uint64_t name = 1; name < 100; ++name) {
    // GIVEN an old object that is given a young one
    auto* young = heap->allocate<Node>(kNode);
    young->name = name;
    heap->store<Node>(old.get(), old->to[1], young);
    // WHEN the nursery is collected THEN the young one lives
    ASSERT_TRUE(heap->collect_minor());
    ASSERT_EQ(old->to[1]->name, name);
  }
}

TEST(Heap, LargeObjectsLiveAndDieLikeOthers) {
  const auto heap = heap_with({.nursery_bytes = kSmallNursery});
  Root<Node> holder(*heap, heap->allocate<Node>(kNode));
  auto* large = static_cast<Node*>(heap->allocate(kNode, 100'000));
  large->name = 17;
  heap->store<Node>(holder.get(), holder->to[0], large);
  ASSERT_NE(heap->allocate(kNode, 200'000), nullptr);  // garbage
  ASSERT_TRUE(heap->collect_minor());
  EXPECT_EQ(holder->to[0]->name, 17U);
  EXPECT_EQ(heap->statistics().old_bytes, 100'000 + sizeof(Node));
  EXPECT_EQ(heap->statistics().allocated_large_bytes, 300'000U);
  heap->store<Node>(holder.get(), holder->to[0], nullptr);
  ASSERT_TRUE(heap->collect_all());
  EXPECT_EQ(heap->statistics().old_bytes, sizeof(Node));
}

TEST(Heap, OutOfMemoryIsAnAnswerAndTheHeapStaysWhole) {
  // GIVEN a heap of 16 MiB and a list that fills it
  const auto heap = heap_with({.nursery_bytes = kSmallNursery, .most_bytes = std::size_t{16} << 20U});
  EXPECT_EQ(heap->allocate(kBytes, std::size_t{17} << 20U), nullptr);
  EXPECT_EQ(heap->allocate(kBytes, ~std::size_t{0} - 4), nullptr);
  std::uint64_t length = 0;
  {
    Root<Node> list(*heap);
    while (auto* node = heap->allocate<Node>(kNode)) {
      heap->store(node, node->to[0], list.get());
      list = node;
      ++length;
      ASSERT_LT(length, std::uint64_t{16} << 20U);
    }
    // THEN it is all there
    std::uint64_t found = 0;
    for (const Node* node = list.get(); node != nullptr; node = node->to[0]) ++found;
    EXPECT_EQ(found, length);
    EXPECT_GT(length * sizeof(Node), std::uint64_t{8} << 20U);
  }
}

TEST(Heap, WhatHasDiedMakesRoomWhenMemoryIsOut) {
  // GIVEN a heap that a list has filled up, so that there is no room to empty the nursery into
  const auto heap = heap_with({.nursery_bytes = kSmallNursery, .most_bytes = std::size_t{16} << 20U});
  {
    Root<Node> list(*heap);
    while (auto* node = heap->allocate<Node>(kNode)) {
      heap->store(node, node->to[0], list.get());
      list = node;
    }
    ASSERT_EQ(heap->allocate<Node>(kNode), nullptr);
  }
  // WHEN the list is dropped THEN there is memory again, and all of the list's is free in the end
  EXPECT_NE(heap->allocate<Node>(kNode), nullptr);
  allocate_garbage(*heap, std::uint64_t{32} << 20U, 500);
  ASSERT_TRUE(heap->collect_all());
  EXPECT_EQ(heap->statistics().old_bytes, 0U);
}

TEST(Heap, LargeGarbageMakesRoomWhenMemoryIsOut) {
  // GIVEN a dead large object that takes the memory that a collection needs, and is a sample
  Notes notes;
  const auto heap = heap_with({.nursery_bytes = kSmallNursery,
                               .most_bytes = std::size_t{16} << 20U,
                               .sampling = {std::uint64_t{1} << 20U, Distance::Law::kFixed},
                               .observer = &notes});
  Root<Node> kept(*heap, heap->allocate<Node>(kNode));
  heap->store(kept.get(), kept->to[0], static_cast<Node*>(heap->allocate(kNode, 10'000)));
  kept->to[0]->name = 17;
  ASSERT_NE(heap->allocate(kBytes, 13'500'000), nullptr);
  // WHEN the nursery is full
  allocate_garbage(*heap, 2 * kSmallNursery, 500);
  // THEN the large one has made room, what is reachable is there, and the sample has been told its fate
  EXPECT_EQ(kept->to[0]->name, 17U);
  EXPECT_EQ(heap->statistics().old_bytes, 10'000 + sizeof(Node));
  ASSERT_GE(notes.notes.size(), 1U);
  EXPECT_TRUE(notes.notes[0].is_settled);
  EXPECT_EQ(notes.notes[0].fate, Fate::kDied);
}

TEST(Heap, MemoryThatIsKeptForSmallObjectsIsThereForLargeOnes) {
  // GIVEN a heap of 64 MiB with 46 MiB of small objects, half of which have died
  const auto heap = heap_with({.nursery_bytes = kSmallNursery, .most_bytes = std::size_t{64} << 20U});
  Root<Node> list(*heap);
  for (int i = 0; i < 1'000'000; ++i) {
    auto* node = heap->allocate<Node>(kNode);
    ASSERT_NE(node, nullptr);
    if (i != 500'000) heap->store(node, node->to[0], list.get());
    list = node;
  }
  ASSERT_TRUE(heap->collect_all());
  // WHEN a large one needs nearly all that is left THEN it is there
  EXPECT_NE(heap->allocate(kBytes, std::size_t{36} << 20U), nullptr);
}

TEST(Heap, MarkingEndsThoughALargeObjectChangesAllTheTime) {
  // GIVEN an old object that is larger than what is marked in one step, and is stored to between any two
  const auto heap = heap_with({.nursery_bytes = kSmallNursery});
  Root<Node> table(*heap, static_cast<Node*>(heap->allocate(kNode, 400'000)));
  Root<Node> list(*heap);
  ASSERT_TRUE(heap->collect_all());
  // WHEN 120 MB of objects are born, some of which grow old and die then
  for (int i = 0; i < 3'000'000; ++i) {
    auto* node = heap->allocate<Node>(kNode);
    if (i % 500 != 0) heap->store(node, node->to[0], list.get());
    list = node;
    if (i % 64 == 0) heap->store(table.get(), table->to[0], list.get());
  }
  // THEN they are found dead, time after time
  EXPECT_GT(heap->statistics().major_collections, 10U);
  EXPECT_LT(heap->statistics().old_bytes, std::size_t{4} << 20U);
}

TEST(Heap, AllMemoryIsTheSystemsAgainInTheEnd) {
  const auto pages = [] {
    std::size_t of_addresses = 0;
    std::ifstream("/proc/self/statm") >> of_addresses;
    return of_addresses;
  };
  const std::size_t before = pages();
  for (int i = 0; i < 1000; ++i) (void)heap_with({.nursery_bytes = kSmallNursery + 1});
  EXPECT_LT(pages(), before + 500);
}

TEST(Heap, BadSettingsAreRefused) {
  EXPECT_FALSE(Heap::create({.types = kTypes, .most_bytes = std::size_t{1} << 20U}).ok());
  EXPECT_FALSE(Heap::create({.types = kTypes, .nursery_bytes = 1000}).ok());
  EXPECT_FALSE(Heap::create({.types = kTypes, .sampling = {63}}).ok());
  EXPECT_FALSE(Heap::create({.types = kTypes, .seed = 0}).ok());
  EXPECT_FALSE(heap_with({})->set_sampling({1}).ok());
}

// ---- sampling ----

struct SamplingCase {
  Distance distance;
  std::size_t nursery_bytes;
};

class HeapSampling : public ::testing::TestWithParam<SamplingCase> {};

TEST_P(HeapSampling, SamplesAreExactlyTheObjectsThatHoldAPoint) {
  // GIVEN a heap with sampling, and the same stream of points beside it
  constexpr std::uint64_t kSeed = 99;
  const SamplingCase& with = GetParam();
  Notes notes;
  const auto heap = heap_with({.nursery_bytes = with.nursery_bytes,
                               .most_bytes = std::size_t{1} << 40U,
                               .sampling = with.distance,
                               .seed = kSeed,
                               .observer = &notes});
  SamplePoint oracle(with.distance, kSeed);
  std::vector<Sample> expected;
  // WHEN objects of all sizes are allocated, large ones among them
  std::uint64_t bytes = 0;
  std::uint64_t points = 0;
  std::uint64_t state = 12345;
  for (int i = 0; i < 200'000; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const std::size_t size = i % 1000 == 0 ? 8'000 + (state >> 45U) : 8 + (state >> 56U);
    const Object* object = heap->allocate(kBytes, size);
    ASSERT_NE(object, nullptr);
    if (const std::uint64_t here = oracle.advance(object->size())) {
      expected.push_back({expected.size(), kBytes, object->size(), here, here * with.distance.mean_bytes, bytes});
      points += here;
    }
    bytes += object->size();
  }
  // THEN the samples are those, in number, size and place
  ASSERT_EQ(notes.notes.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(notes.notes[i].sample, expected[i]);
  const Statistics statistics = heap->statistics();
  EXPECT_EQ(statistics.allocated_bytes, bytes);
  EXPECT_EQ(statistics.points, points);
  if (with.distance.law == Distance::Law::kFixed) {
    EXPECT_EQ(points, bytes / with.distance.mean_bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Distances, HeapSampling,
    ::testing::Values(SamplingCase{{64, Distance::Law::kFixed}, kSmallNursery},
                      SamplingCase{{100, Distance::Law::kFixed}, kSmallNursery},
                      SamplingCase{{4096, Distance::Law::kFixed}, kSmallNursery},
                      SamplingCase{{kSmallNursery, Distance::Law::kFixed}, kSmallNursery},
                      SamplingCase{{1'000'003, Distance::Law::kFixed}, kSmallNursery},
                      SamplingCase{{std::uint64_t{1} << 32U, Distance::Law::kFixed}, kSmallNursery},
                      SamplingCase{{64, Distance::Law::kExponential}, kSmallNursery},
                      SamplingCase{{32768, Distance::Law::kExponential}, kSmallNursery},
                      SamplingCase{{524'288, Distance::Law::kExponential}, std::size_t{4} << 20U}));

TEST(HeapSampling, ASampleIsToldWhetherItSurvivedTheNextCollection) {
  // GIVEN a sample point in every object
  Notes notes;
  const auto heap = heap_with({.nursery_bytes = kSmallNursery,
                               .most_bytes = std::size_t{1} << 40U,
                               .sampling = {64, Distance::Law::kFixed},
                               .observer = &notes});
  Root<Node> kept(*heap);
  Root<Node> kept_large(*heap);
  for (int i = 0; i < 100; ++i) {
    auto* node = static_cast<Node*>(heap->allocate(kNode, 64));
    if (i % 4 == 0) {  // a list of every fourth
      heap->store(node, node->to[0], kept.get());
      kept = node;
    }
  }
  kept_large = static_cast<Node*>(heap->allocate(kNode, 16'000));
  ASSERT_NE(heap->allocate(kNode, 16'000), nullptr);
  ASSERT_EQ(notes.notes.size(), 102U);
  EXPECT_FALSE(notes.notes[0].is_settled);
  // WHEN the nursery is collected
  ASSERT_TRUE(heap->collect_minor());
  // THEN those that are reachable have survived, large ones alike, and each was told once
  for (std::size_t i = 0; i < 102; ++i) {
    ASSERT_TRUE(notes.notes[i].is_settled);
    const bool is_kept = i == 100 || (i < 100 && i % 4 == 0);
    EXPECT_EQ(notes.notes[i].fate, is_kept ? Fate::kSurvived : Fate::kDied) << i;
  }
  EXPECT_EQ(heap->statistics().sampled_that_survived, 26U);
}

TEST(HeapSampling, TheDistanceCanBeChangedAndTurnedOff) {
  Notes notes;
  const auto heap = heap_with({.nursery_bytes = kSmallNursery, .observer = &notes});
  allocate_garbage(*heap, 1 << 20U, 500);
  EXPECT_TRUE(notes.notes.empty());
  ASSERT_TRUE(heap->set_sampling({1024, Distance::Law::kFixed}).ok());
  const std::uint64_t before = heap->statistics().allocated_bytes;
  allocate_garbage(*heap, 1 << 20U, 500);
  const std::uint64_t sampled_bytes = heap->statistics().allocated_bytes - before;
  EXPECT_EQ(notes.notes.size(), sampled_bytes / 1024);
  ASSERT_TRUE(heap->set_sampling({}).ok());
  const std::size_t samples = notes.notes.size();
  allocate_garbage(*heap, 1 << 20U, 500);
  EXPECT_EQ(notes.notes.size(), samples);
}

TEST(HeapSampling, PointsDependOnTheSeedAlsoWhereSamplingIsTurnedOnLater) {
  // GIVEN heaps without sampling WHEN it is turned on in each, off, and on again
  const auto positions = [](std::uint64_t seed) {
    Notes notes;
    const auto heap = heap_with({.nursery_bytes = kSmallNursery, .seed = seed, .observer = &notes});
    std::vector<std::vector<std::uint64_t>> rounds;
    for (int round = 0; round < 2; ++round) {
      EXPECT_TRUE(heap->set_sampling({4096}).ok());
      const std::uint64_t from = heap->statistics().allocated_bytes;
      const std::size_t known = notes.notes.size();
      allocate_garbage(*heap, 1 << 18U, 500);
      EXPECT_TRUE(heap->set_sampling({}).ok());
      rounds.emplace_back();
      for (std::size_t i = known; i < notes.notes.size(); ++i)
        rounds.back().push_back(notes.notes[i].sample.position - from);
    }
    return rounds;
  };
  // THEN their points are those of their seeds, and those of a second time are others than of the first
  const auto first = positions(1);
  EXPECT_FALSE(first[0].empty());
  EXPECT_EQ(positions(1), first);
  EXPECT_NE(positions(2)[0], first[0]);
  EXPECT_NE(first[1], first[0]);
}

}  // namespace
}  // namespace plimsoll::nursery
