#include "alloc/object_heap.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "alloc/block_map.h"
#include "alloc/sampled_blocks.h"
#include "base/poisson.h"
#include "base/steps_testing.h"
#include "os/available_memory.h"

namespace plimsoll::alloc {
namespace {

constexpr std::size_t kRegion = std::size_t{256} << 20U;

// As the hooks allocate where a sample is given a block of the heap like any other.
void* allocate(ObjectHeap& heap, std::size_t size) {
  const std::size_t size_class = ObjectHeap::class_of(size);
  if (void* at = heap.allocate(size_class)) return at;
  const ObjectHeap::Outcome outcome = heap.allocate_slowly(size_class);
  return outcome.is_sample ? heap.take(size_class).block : outcome.block;
}

// Bytes of addresses that the process has.
std::uint64_t mapped_bytes() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

TEST(ObjectHeap, GivesAlignedBlocksOfTheClass) {
  ObjectHeap heap(kRegion, 1);
  for (std::size_t size = 1; size <= ObjectHeap::kLargest; ++size) {
    void* at = allocate(heap, size);
    ASSERT_NE(at, nullptr);
    EXPECT_TRUE(heap.owns(at));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % 16, 0U);
    EXPECT_GE(heap.size_of(at), size);
    EXPECT_LT(heap.size_of(at), size + 16);
  }
  int elsewhere = 0;
  EXPECT_FALSE(heap.owns(&elsewhere));
  EXPECT_FALSE(heap.owns(nullptr));
}

TEST(ObjectHeap, TellsOfAllBlocksThatItsClassesHaveAlsoWhereEachIsASampleWithoutAPlaceElsewhere) {
  ObjectHeap heap(kRegion, 1);
  heap.set_distance(1);
  constexpr std::size_t kBytes = 64, kClass = ObjectHeap::class_of(kBytes), kBlocks = 2000;
  std::size_t taken = 0;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    ASSERT_EQ(heap.allocate(kClass), nullptr);
    const ObjectHeap::Outcome outcome = heap.allocate_slowly(kClass);
    ASSERT_TRUE(outcome.is_sample);
    const ObjectHeap::Outcome block = heap.take(kClass);
    ASSERT_NE(block.block, nullptr);
    taken += outcome.blocks_taken + block.blocks_taken;
  }
  EXPECT_EQ(taken * kBytes - heap.unused_bytes(), kBlocks * kBytes);
}

TEST(ObjectHeap, TellsHowManyBlocksOfEachPageAreGivenOut) {
  // GIVEN a heap with samples in sight, and blocks of two classes, two pages full of one and some of them freed
  ObjectHeap heap(kRegion, 1);
  heap.set_distance(4096);
  std::vector<void*> small;
  for (int i = 0; i < 600; ++i) small.push_back(allocate(heap, 64));
  for (int i = 0; i < 5; ++i) ASSERT_NE(allocate(heap, 512), nullptr);
  for (int i = 0; i < 100; ++i) heap.free(small[static_cast<std::size_t>(i)]);
  for (int i = 590; i < 600; ++i) heap.free(small[static_cast<std::size_t>(i)]);
  // WHEN
  const std::vector<HeapPage> pages = heap.pages();
  // THEN
  ASSERT_EQ(pages.size(), 4U);
  EXPECT_EQ(pages[0].start, static_cast<char*>(small[0]) - 48);
  EXPECT_EQ(pages[0].block_bytes, 64U);
  EXPECT_EQ(pages[0].capacity, 255U);
  EXPECT_EQ(pages[0].used, 155U);
  EXPECT_EQ(pages[1].used, 255U);
  EXPECT_EQ(pages[2].used, 600U - 2 * 255 - 10);
  EXPECT_EQ(pages[3].block_bytes, 512U);
  EXPECT_EQ(pages[3].used, 5U);
  // AND all are empty when all have come back, also while it is closed
  heap.close();
  for (int i = 100; i < 590; ++i) heap.free(small[static_cast<std::size_t>(i)]);
  for (const HeapPage& page : heap.pages()) EXPECT_EQ(page.used, page.block_bytes == 64 ? 0U : 5U);
}

TEST(ObjectHeap, GivesNothingWhileItIsClosed) {
  // GIVEN a heap with a sample in sight, which has given out one of a page's blocks
  ObjectHeap heap(kRegion, 1);
  heap.set_distance(4096);
  void* first = allocate(heap, 64);
  // WHEN it is closed THEN there are no blocks, and those that are out come back
  heap.close();
  EXPECT_EQ(heap.allocate(ObjectHeap::class_of(64)), nullptr);
  heap.free(first);
  EXPECT_EQ(heap.allocate(ObjectHeap::class_of(64)), nullptr);
  // AND it goes on where it was, to the page's last block
  heap.set_distance(0);
  const std::size_t page = heap.used_bytes();
  for (int i = 0; i < 255; ++i) EXPECT_NE(allocate(heap, 64), nullptr);
  EXPECT_EQ(heap.used_bytes(), page);
  EXPECT_NE(allocate(heap, 64), nullptr);
  EXPECT_GT(heap.used_bytes(), page);
}

TEST(ObjectHeap, LeavesMostOfFewAddressesToTheProgram) {
  // GIVEN a process that may map 40 MiB more
  constexpr std::uint64_t kLeft = std::uint64_t{40} << 20U;
  const auto with_few = [] {
    rlimit limit{};
    ::getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = std::uint64_t{1} << 50U;
    ::setrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur += kLeft - os::address_space_left();
    ::setrlimit(RLIMIT_AS, &limit);
    // WHEN a heap would have 64 GiB THEN it has some of that, and most is left
    ObjectHeap heap(std::size_t{1} << 36U, 1);
    const bool has_blocks = allocate(heap, 64) != nullptr;
    const std::uint64_t left = os::address_space_left();
    ::_exit(has_blocks && left < kLeft && left > kLeft / 2 ? 0 : 1);
  };
  EXPECT_EXIT(with_few(), ::testing::ExitedWithCode(0), "");
}

// Bytes of data that the process has (RLIMIT_DATA).
std::uint64_t data_bytes() {
  std::ifstream status("/proc/self/status");
  std::uint64_t kib = 0;
  for (std::string word; status >> word && word != "VmData:";) continue;
  status >> kib;
  return kib * 1024;
}

TEST(ObjectHeap, IsDataOfTheProgramOnlyAsFarAsItIsUsed) {
  // GIVEN a process that may have 64 MiB of data more
  constexpr std::uint64_t kLeft = std::uint64_t{64} << 20U;
  const auto with_few = [] {
    const std::uint64_t before = data_bytes();
    rlimit limit{};
    ::getrlimit(RLIMIT_DATA, &limit);
    limit.rlim_cur = before + kLeft;
    ::setrlimit(RLIMIT_DATA, &limit);
    // WHEN all that recordings reserve is there THEN nearly none of it is taken
    ObjectHeap heap(std::size_t{1} << 36U, 1);
    SampledBlocks sampled(std::size_t{1} << 22U);
    BlockMap map;
    const bool is_there = allocate(heap, 64) != nullptr && sampled.place({1, 64, 7}) != nullptr && map.prepare().ok() &&
                          map.set(&heap, 5) && map.get(&heap) == 5;
    const bool is_little = data_bytes() - before < kLeft / 4;
    // AND the heap has the rest, until there is no more
    std::uint64_t bytes = 0;
    while (allocate(heap, 512) != nullptr) bytes += 512;
    ::_exit(is_there && is_little && bytes > kLeft / 2 && bytes < kLeft ? 0 : 1);
  };
  EXPECT_EXIT(with_few(), ::testing::ExitedWithCode(0), "");
}

TEST(ObjectHeap, AddressesThatWereNotUsedCanBeGivenBack) {
  // GIVEN a heap of which a part is used
  ObjectHeap heap(std::size_t{1} << 32U, 1);
  constexpr std::size_t kClass = ObjectHeap::class_of(512);
  const auto allocate = [&] {
    void* at = heap.allocate(kClass);
    return at != nullptr ? at : heap.allocate_slowly(kClass).block;
  };
  std::vector<void*> blocks;
  for (int i = 0; i < 10'000; ++i) blocks.push_back(allocate());
  const std::uint64_t before = mapped_bytes();
  // WHEN the rest is given back THEN it is, with what was to be known of it, and all blocks are its own still
  heap.keep_addresses(std::size_t{16} << 20U);
  EXPECT_GE(before - mapped_bytes(), (std::size_t{1} << 32U) - (std::size_t{17} << 20U));
  for (void* at : blocks) EXPECT_TRUE(heap.owns(at));
  // AND it gives what is left, and no more
  std::size_t more = 0;
  for (; void* at = allocate(); ++more) blocks.push_back(at);
  EXPECT_GT(more, 20'000U);
  EXPECT_LT(blocks.size(), (std::size_t{16} << 20U) / 512);
  for (void* at : blocks) heap.free(at);
  // WHEN less is to be kept than was used THEN that stays
  heap.keep_addresses(0);
  EXPECT_TRUE(heap.owns(blocks.back()));
  EXPECT_NE(allocate(), nullptr);
}

TEST(ObjectHeap, EmptyPagesServeOtherClasses) {
  // GIVEN a heap that has room for 64 pages, full of blocks of one class
  ObjectHeap heap(64 * 16384, 1);
  std::vector<void*> blocks;
  while (void* at = allocate(heap, 16)) blocks.push_back(at);
  EXPECT_EQ(blocks.size(), 64 * 1021U);
  EXPECT_EQ(heap.used_bytes(), 64U * 16384);
  EXPECT_EQ(allocate(heap, 512), nullptr);
  // WHEN all are freed THEN nearly all pages serve another class
  for (void* at : blocks) heap.free(at);
  std::size_t others = 0;
  while (allocate(heap, 512) != nullptr) ++others;
  EXPECT_GE(others, 63 * 31U);
}

// Of the pages of 4 KiB that blocks are in, those with memory.
std::size_t resident_bytes(std::vector<void*> blocks) {
  constexpr std::size_t kSystemPage = 4096;
  for (void*& at : blocks) at = static_cast<char*>(at) - reinterpret_cast<std::uintptr_t>(at) % kSystemPage;
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  std::size_t bytes = 0;
  for (void* at : blocks) {
    unsigned char is_resident = 0;
    EXPECT_EQ(::mincore(at, kSystemPage, &is_resident), 0);
    bytes += (is_resident & 1U) != 0 ? kSystemPage : 0;
  }
  return bytes;
}

TEST(ObjectHeap, MemoryOfEmptyPagesIsGivenBack) {
  // GIVEN blocks of 64 MB
  ObjectHeap heap(kRegion, 1);
  std::vector<void*> blocks;
  for (int i = 0; i < 1'000'000; ++i) blocks.push_back(allocate(heap, 64));
  EXPECT_GE(heap.used_bytes(), 64'000'000U);
  EXPECT_GE(resident_bytes(blocks), 64'000'000U);
  // WHEN all are freed THEN what is left is kept for what comes next
  for (void* at : blocks) heap.free(at);
  EXPECT_LE(heap.used_bytes(), 16384U);
  EXPECT_LE(resident_bytes(blocks), 6'300'000U);
  // AND WHEN they come again, and go THEN twice that is kept
  for (void*& at : blocks) at = allocate(heap, 64);
  EXPECT_GE(resident_bytes(blocks), 64'000'000U);
  for (void* at : blocks) heap.free(at);
  EXPECT_LE(resident_bytes(blocks), 12'600'000U);
  EXPECT_GE(resident_bytes(blocks), 8'300'000U);
}

// As long as it lives, the kernel makes no huge page of what has memory in part: its khugepaged does, every ten
// seconds, and what was given back has memory again.
class NoNewHugePages {
 public:
  NoNewHugePages() { ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); }
  NoNewHugePages(const NoNewHugePages&) = delete;
  NoNewHugePages& operator=(const NoNewHugePages&) = delete;
  ~NoNewHugePages() { ::prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0); }
};

TEST(ObjectHeap, MemoryIsGivenBackAroundBlocksThatLive) {
  // GIVEN blocks of 64 MB, of which one in 300,000 lives on
  ObjectHeap heap(kRegion, 1);
  std::vector<void*> blocks;
  for (int i = 0; i < 1'000'000; ++i) blocks.push_back(allocate(heap, 64));
  const NoNewHugePages as_they_are;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (i % 300'000 != 0) heap.free(blocks[i]);
  // THEN their pages have memory, and what is kept
  EXPECT_LE(resident_bytes(blocks), 6'400'000U);
}

TEST(ObjectHeap, WithoutAddressesItRefuses) {
  ObjectHeap heap(0, 1);
  EXPECT_EQ(allocate(heap, 16), nullptr);
  EXPECT_FALSE(heap.owns(nullptr));
}

// Blocks that are alive, each filled with a pattern of its own.
class Program {
 public:
  Program(ObjectHeap& heap, std::uint64_t seed) : heap_(heap), random_(seed) {}

  void step(std::size_t most_alive) {
    const bool grows = next_random(random_) % 100 < (alive_.size() < most_alive ? 60U : 40U);
    if (grows || alive_.empty()) {
      const std::size_t size = next_random(random_) % 3 == 0 ? 1 + next_random(random_) % 512 : 48;
      const std::size_t size_class = ObjectHeap::class_of(size);
      expected_samples += chance_of_sample(ObjectHeap::bytes_of(size_class), kDistance);
      auto* at = static_cast<unsigned char*>(heap_.allocate(size_class));
      if (at == nullptr) {
        const ObjectHeap::Outcome outcome = heap_.allocate_slowly(size_class);
        at = static_cast<unsigned char*>(outcome.block);
        samples += outcome.is_sample ? 1 : 0;
        // Some samples live elsewhere, and some in the heap after all.
        if (outcome.is_sample && takes_samples) at = static_cast<unsigned char*>(heap_.take(size_class).block);
        ASSERT_TRUE(at != nullptr || outcome.is_sample);
        if (at == nullptr) return;
      }
      alive_.push_back({at, size, ++pattern_});
      std::memset(at, pattern_, size);
      return;
    }
    const std::size_t chosen = next_random(random_) % alive_.size();
    const Alive block = alive_[chosen];
    for (std::size_t i = 0; i < block.size; ++i) ASSERT_EQ(block.at[i], block.pattern);
    heap_.free(block.at);
    alive_[chosen] = alive_.back();
    alive_.pop_back();
  }
  void free_all() {
    for (const Alive& block : alive_) heap_.free(block.at);
    alive_.clear();
  }

  static constexpr std::uint64_t kDistance = 2000;
  bool takes_samples = false;
  std::uint64_t samples = 0;
  double expected_samples = 0;  // at kDistance

 private:
  struct Alive {
    unsigned char* at;
    std::size_t size;
    unsigned char pattern;
  };
  ObjectHeap& heap_;
  std::uint64_t random_;
  unsigned char pattern_ = 0;
  std::vector<Alive> alive_;
};

TEST(ObjectHeap, NoBlockIsGivenTwiceOrWrittenToWithAndWithoutSampling) {
  for (const std::uint64_t distance : {0, 16, 200, 5000, 1 << 20}) {
    SCOPED_TRACE(distance);
    ObjectHeap heap(kRegion, 3);
    heap.set_distance(distance);
    Program program(heap, 17 + distance);
    for (int i = 0; i < 100'000; ++i) {
      program.takes_samples = i % 2 == 0;
      if (i % 50'000 == 25'000) heap.set_distance(i % 100'000 == 25'000 ? 0 : distance);  // while it runs
      program.step(20'000);
      if (HasFatalFailure()) return;
    }
    program.free_all();
    EXPECT_LE(heap.used_bytes(), ObjectHeap::kClasses * 16384);
  }
}

TEST(ObjectHeap, TheNthBlockIsTheSampleThatWasDrawn) {
  // GIVEN one class, and the distances that the heap will draw: one for each class when sampling begins, then as they
  // come
  constexpr std::uint64_t kDistance = 3000;
  constexpr std::uint64_t kSeed = 5;
  std::uint64_t random = kSeed;
  std::uint64_t due = 0;
  for (std::size_t c = 0; c < ObjectHeap::kClasses; ++c) {
    const std::uint64_t drawn = blocks_to_sample(random, ObjectHeap::bytes_of(c), kDistance);
    if (c == 2) due = drawn;
  }
  ObjectHeap heap(kRegion, kSeed);
  heap.set_distance(kDistance);
  // WHEN blocks are allocated, sampled ones elsewhere
  for (std::uint64_t i = 1; i < 100'000; ++i) {
    bool is_sample = false;
    if (heap.allocate(2) == nullptr) is_sample = heap.allocate_slowly(2).is_sample;
    // THEN samples are exactly where they should be
    ASSERT_EQ(is_sample, i == due) << i;
    if (is_sample) due += blocks_to_sample(random, 48, kDistance);
  }
}

TEST(ObjectHeap, SamplesAreAsManyAsTheBytesAreWorth) {
  ObjectHeap heap(kRegion, 11);
  heap.set_distance(Program::kDistance);
  Program program(heap, 99);
  for (int i = 0; i < 1'000'000; ++i) program.step(5'000);
  const double expected = program.expected_samples;
  EXPECT_NEAR(static_cast<double>(program.samples), expected, 4 * std::sqrt(expected));
}

// ---- what it costs ----

[[gnu::noinline]] void allocate_and_free(ObjectHeap& heap) {
  void* at = heap.allocate(3);
  if (at == nullptr) at = heap.allocate_slowly(3).block;
  heap.free(at);
}

long steps_with(std::uint64_t distance) {
  ObjectHeap heap(kRegion, 1);
  heap.set_distance(distance);
  // From the front of a long list, so that no count meets its end.
  for (int i = 0; i < 3; ++i) allocate_and_free(heap);
  std::vector<void*> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(allocate(heap, 64));
  for (void* at : blocks) heap.free(at);
  return plimsoll::testing::steps_of_one([&] { allocate_and_free(heap); });
}

TEST(ObjectHeap, SamplingAddsNoInstructionToAllocationAndFree) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer's own instructions are not the same each time";
#endif
  const long steps_off = steps_with(0);
  if (steps_off < 0) GTEST_SKIP() << "this process may not trace its children: no instructions can be counted";
  EXPECT_EQ(steps_with(std::uint64_t{1} << 32U), steps_off);
  EXPECT_EQ(steps_with(std::uint64_t{1} << 40U), steps_off);
#if defined(__OPTIMIZE__) && !defined(PLIMSOLL_SANITIZED)  // whose checks are instructions, too
  EXPECT_LE(steps_off, 32) << "for both, with a call and a loop around them";
#endif
}

}  // namespace
}  // namespace plimsoll::alloc
