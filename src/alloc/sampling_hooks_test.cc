#include "alloc/sampling_hooks.h"

#include <gtest/gtest.h>

#include <barrier>
#include <thread>
#include <vector>

#include "alloc/sampling_hooks_testing.h"
#include "base/poisson.h"

namespace plimsoll::alloc {
namespace {

using namespace testing;

constexpr std::uint64_t kDistance = 256;

TEST(SamplingHooks, DrawnProgramsKeepTheirBlocks) {
  // GIVEN programs drawn at random, of allocations, recordings, and other tools that come and go
  // WHEN they run THEN every block is as it should be (Program checks that), and some were sampled
  std::uint64_t samples = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    std::uint64_t random = seed;
    Program program;
    for (int i = 0; i < 3000; ++i) {
      const std::uint64_t drawn = next_random(random) >> 20U;
      program.step(static_cast<std::uint8_t>(drawn), static_cast<std::uint8_t>(drawn >> 8U),
                   static_cast<std::uint8_t>(drawn >> 16U));
    }
    samples += program.witness.samples;
  }
  EXPECT_GT(samples, 10'000U);
}

// Allocates blocks in a program's object domain.
std::vector<void*> allocate(const Table& table, std::size_t size, int count) {
  std::vector<void*> blocks;
  for (int i = 0; i < count; ++i) {
    const Allocator from = table.get(Domain::kObject);
    blocks.push_back(from.malloc(from.context, size));
  }
  return blocks;
}

void free_all(const Table& table, const std::vector<void*>& blocks) {
  for (void* at : blocks) {
    const Allocator from = table.get(Domain::kObject);
    from.free(from.context, at);
  }
}

TEST(SamplingHooks, ARecordingIsCutShortByAToolThatWasThereBefore) {
  // GIVEN a recording that began over another tool's hooks
  Below below;
  Table table(below);
  Witness witness;
  table.begin_others();
  ASSERT_TRUE(start_sampling(witness, table, kDistance, Interpreters::kInTurns).ok());
  std::vector<void*> blocks = allocate(table, 300, 100);
  const std::uint64_t seen = witness.samples;
  EXPECT_GT(seen, 20U);
  // WHEN that tool puts back what was there before it THEN ours are gone, too, and the recording says so
  table.end_others();
  free_all(table, blocks);
  free_all(table, allocate(table, 300, 100));
  EXPECT_EQ(witness.samples, seen);
  EXPECT_EQ(stop_sampling(), Stopped::kCutShort);
  // and the next one samples again
  witness.forget();
  ASSERT_TRUE(start_sampling(witness, table, kDistance, Interpreters::kInTurns).ok());
  free_all(table, allocate(table, 300, 100));
  EXPECT_GT(witness.samples, seen + 20);
  EXPECT_EQ(stop_sampling(), Stopped::kWhole);
  forget_hooks();
}

TEST(SamplingHooks, WhatIsNotGivenOutDoesNotCount) {
  // GIVEN a program that asks for what nobody has
  Below below;
  Table table(below);
  Witness witness;
  ASSERT_TRUE(start_sampling(witness, table, kDistance, Interpreters::kInTurns).ok());
  std::vector<void*> blocks = allocate(table, 10'000, 1);
  constexpr std::size_t kTooMuch = std::size_t{1} << 46U;
  for (int i = 0; i < 3; ++i) {
    below.fail_once();
    const Allocator from = table.get(Domain::kObject);
    EXPECT_EQ(from.malloc(from.context, kTooMuch), nullptr);
  }
  // WHEN it goes on THEN only what it was given is counted, and sampled as ever
  for (void* at : allocate(table, 10'000, 300)) blocks.push_back(at);
  free_all(table, blocks);
  EXPECT_EQ(stop_sampling(), Stopped::kWhole);
  EXPECT_EQ(witness.counted, 301U * 10'000U);
  EXPECT_GT(witness.samples, 250U);
  forget_hooks();
}

// Holds a sample point, as good as always.
constexpr std::size_t kSureBytes = 40 * kDistance;

TEST(SamplingHooks, WhatComesRightBehindAPauseIsSampledAsEver) {
  // GIVEN a recording of a program
  Below below;
  Table table(below);
  Witness witness;
  ASSERT_TRUE(start_sampling(witness, table, kDistance, Interpreters::kInTurns).ok());
  std::uint64_t expected = 0;
  for (int i = 0; i < 20; ++i) {
    // WHEN it is paused THEN nothing is sampled, and its first block after that is
    pause_sampling();
    free_all(table, allocate(table, kSureBytes, 10));
    resume_sampling();
    EXPECT_EQ(witness.samples, expected);
    free_all(table, allocate(table, kSureBytes, 1));
    EXPECT_EQ(witness.samples, ++expected);
  }
  EXPECT_EQ(stop_sampling(), Stopped::kWhole);
  forget_hooks();
}

TEST(SamplingHooks, AThreadOfAnEarlierRecordingIsSampledFromItsFirstBlockOn) {
  Below below;
  Table table(below);
  std::barrier turn(2);
  // GIVEN a thread that allocates in each of some recordings of different distances
  std::jthread thread([&] {
    for (int i = 0; i < 6; ++i) {
      turn.arrive_and_wait();
      free_all(table, allocate(table, kSureBytes, 1));
      turn.arrive_and_wait();
    }
  });
  for (int i = 0; i < 6; ++i) {
    // WHEN the next one begins THEN its first block is a sample, where the distance is short
    const bool is_short = i % 2 == 1;
    Witness witness;
    ASSERT_TRUE(
        start_sampling(witness, table, is_short ? kDistance : std::uint64_t{1} << 50U, Interpreters::kInTurns).ok());
    turn.arrive_and_wait();
    turn.arrive_and_wait();
    EXPECT_EQ(witness.samples, is_short ? 1 : 0);
    EXPECT_EQ(stop_sampling(), Stopped::kWhole);
  }
  forget_hooks();
}

TEST(SamplingHooks, BytesOfListsThatAreNotUsedUpAreNotCounted) {
  Below below;
  Table table(below);
  // GIVEN two recordings, of which the second has what the first has left of its list
  for (int i = 0; i < 2; ++i) {
    Witness witness;
    ASSERT_TRUE(start_sampling(witness, table, std::size_t{1} << 40U, Interpreters::kInTurns).ok());
    const std::vector<void*> blocks = allocate(table, 64, 10);
    // WHEN it ends THEN what it gave out is counted
    EXPECT_EQ(stop_sampling(), Stopped::kWhole);
    EXPECT_EQ(witness.counted, 640U);
    free_all(table, blocks);
  }
  forget_hooks();
}

TEST(SamplingHooks, WhatIsGivenOutWhilePausedIsNotCounted) {
  Below below;
  Table table(below);
  // GIVEN a recording that is paused while small and large blocks are allocated, and has been by two at once
  Witness witness;
  ASSERT_TRUE(start_sampling(witness, table, std::size_t{1} << 40U, Interpreters::kInTurns).ok());
  std::vector<std::vector<void*>> blocks;
  const auto allocate_both = [&](int small, int large) {
    blocks.push_back(allocate(table, 64, small));
    blocks.push_back(allocate(table, 1000, large));
  };
  for (int i = 0; i < 3; ++i) {
    allocate_both(10, 3);
    pause_sampling();
    allocate_both(7, 5);
    pause_sampling();
    allocate_both(5000, 400);
    resume_sampling();
    allocate_both(7, 5);
    resume_sampling();
    allocate_both(400, 100);
  }
  pause_sampling();
  allocate_both(5000, 400);
  // WHEN it ends THEN what was given out in between is counted
  EXPECT_EQ(stop_sampling(), Stopped::kWhole);
  EXPECT_EQ(witness.counted, 3 * (410U * 64U + 103U * 1000U));
  for (const std::vector<void*>& some : blocks) free_all(table, some);
  forget_hooks();
}

TEST(SamplingHooks, AToolThatComesLaterMayGo) {
  Below below;
  Table table(below);
  Witness witness;
  ASSERT_TRUE(start_sampling(witness, table, kDistance, Interpreters::kInTurns).ok());
  table.begin_others();
  std::vector<void*> blocks = allocate(table, 100, 100);
  table.end_others();
  free_all(table, blocks);
  free_all(table, allocate(table, 2000, 100));
  EXPECT_EQ(stop_sampling(), Stopped::kWhole);
  EXPECT_GT(witness.samples, 50U);
  EXPECT_EQ(living_samples(), 0U);
  forget_hooks();
}

TEST(SamplingHooks, TheHeapIsLockedWhenTheNextRecordingNeedsThat) {
  // GIVEN hooks for frees, left from a recording in one interpreter
  Below below;
  Table table(below);
  Witness witness;
  ASSERT_TRUE(start_sampling(witness, table, kDistance, Interpreters::kInTurns).ok());
  const auto unlocked = table.get(Domain::kObject).free;
  const std::vector<void*> blocks = allocate(table, 100, 100);
  stop_sampling();
  witness.forget();
  // WHEN interpreters run at the same time THEN the hooks are others
  ASSERT_TRUE(start_sampling(witness, table, kDistance, Interpreters::kAtOnce).ok());
  EXPECT_NE(table.get(Domain::kObject).free, unlocked);
  free_all(table, blocks);
  stop_sampling();
  forget_hooks();
}

}  // namespace
}  // namespace plimsoll::alloc
