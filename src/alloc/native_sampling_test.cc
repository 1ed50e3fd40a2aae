#include "alloc/native_sampling.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "alloc/exact_hooks.h"
#include "alloc/patched_malloc.h"
#include "alloc/testing.h"
#include "base/inside.h"
#include "base/poisson.h"
#include "base/steps_testing.h"

namespace plimsoll::alloc {
namespace {

// Sums up what it is told; in any thread.
class Counter final : public SampleTaker {
 public:
  explicit Counter(std::uint64_t mean_bytes) : mean_bytes_(mean_bytes) {}
  std::uint64_t next_number() override { return ++numbers_; }
  bool allocated(const SampledBlock& block, std::uint64_t chance_bytes) override {
    ++samples;
    const double weight = 1 / chance_of_sample(chance_bytes, mean_bytes_);
    bytes += static_cast<double>(block.size) * weight;
    if (static_cast<Domain>(block.kind) == Domain::kMalloc) ++mallocs;
    return true;
  }
  void ended(const void* at, const SampledBlock& block, End end) override {
    ++(end == End::kOfTime ? alive : ends);
    ended_at = at;
    ended_size = block.size;
  }
  void count_bytes(std::uint64_t given) override { counted += given; }

  std::atomic<std::uint64_t> samples{0}, mallocs{0}, ends{0}, alive{0}, counted{0}, ended_size{0};
  std::atomic<const void*> ended_at{nullptr};
  std::atomic<double> bytes{0};

 private:
  const std::uint64_t mean_bytes_;
  std::atomic<std::uint64_t> numbers_{0};
};

// Blocks of the C++ library's, which is a module that imports malloc, as the test itself is left alone.
void* allocate(std::size_t size) { return ::operator new(size); }
void release(void* at) { ::operator delete(at); }

class NativeSampling : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer's operator new does not turn to malloc";
#endif
  }
};

TEST_F(NativeSampling, SumsAreRight) {
  // GIVEN a recording of malloc
  constexpr std::uint64_t kMean = 4096;
  testing::CLibraryTable table;
  Counter counter(kMean);
  std::vector<void*> kept;
  kept.reserve(20'000);
  ASSERT_TRUE(start_native_sampling(counter, table, kMean, {.has_malloc = true}).ok());
  // WHEN blocks of many sizes are allocated by another module, and half of them freed
  double truth = 0;
  for (std::size_t i = 0; i < 40'000; ++i) {
    const std::size_t size = 16 + i * 37 % 1500;
    truth += static_cast<double>(size);
    void* at = allocate(size);
    if (i % 2 == 0)
      release(at);
    else
      kept.push_back(at);
  }
  const std::uint64_t samples = counter.samples, ends = counter.ends;
  for (void* at : kept) release(at);
  stop_native_sampling();
  // THEN the samples stand for all of them, and end with them
  EXPECT_NEAR(counter.bytes, truth, truth * 0.06);
  EXPECT_EQ(counter.samples, counter.mallocs);
  EXPECT_NEAR(static_cast<double>(ends), static_cast<double>(samples) / 2, 0.06 * static_cast<double>(samples));
  EXPECT_EQ(counter.samples, counter.ends);
  EXPECT_EQ(living_native_samples(), 0U);
}

TEST_F(NativeSampling, LargeBlocksAreCertain) {
  constexpr std::uint64_t kMean = 100'000;
  testing::CLibraryTable table;
  Counter counter(kMean);
  ASSERT_TRUE(start_native_sampling(counter, table, kMean, {.has_malloc = true}).ok());
  for (int i = 0; i < 100; ++i) release(allocate(kMean));
  stop_native_sampling();
  EXPECT_EQ(counter.samples, 100U);
  EXPECT_EQ(counter.bytes, 100.0 * kMean);
}

// The samples of many small blocks, between which something is done that takes blocks of its own, or none.
template <typename Between>
double samples_of_small_blocks(Between between) {
  constexpr std::uint64_t kMean = 20'000;
  testing::CLibraryTable table;
  Counter counter(kMean);
  testing::require(start_native_sampling(counter, table, kMean, {.has_malloc = true}).ok(), "malloc is recorded");
  for (std::size_t i = 0; i < 20'000; ++i) {
    between(i);
    release(allocate(100));
  }
  stop_native_sampling();
  return static_cast<double>(counter.samples);
}

TEST_F(NativeSampling, WhatNobodyIsGivenIsNotCounted) {
  // GIVEN the samples of a program in which exceptions are thrown, which take memory
  const double thrown = samples_of_small_blocks([](std::size_t) {
    try {
      throw std::bad_alloc();
    } catch (const std::bad_alloc&) {
    }
  });
  ASSERT_GT(thrown, 50);
  // WHEN it asks for more than there is instead, which is answered by such an exception
  constexpr std::array<std::size_t, 2> kFarTooMuch = {std::size_t{PTRDIFF_MAX} - 4096, SIZE_MAX - 4096};
  const double asked = samples_of_small_blocks([&](std::size_t i) {
    try {
      release(allocate(kFarTooMuch[i % kFarTooMuch.size()]));
      ADD_FAILURE() << "there is as much memory";
    } catch (const std::bad_alloc&) {
    }
  });
  // THEN there are as many samples
  EXPECT_NEAR(asked, thrown, 6 * std::sqrt(2 * thrown));
}

TEST_F(NativeSampling, WhatAnAllocatorTakesFromTheOneBelowIsNotCountedTwice) {
  constexpr std::uint64_t kMean = 64;
  testing::CLibraryTable table;
  Counter counter(kMean);
  std::vector<void*> blocks;
  blocks.reserve(100);
  ASSERT_TRUE(start_native_sampling(counter, table, kMean, {.has_malloc = true}).ok());
  inside([&] {
    for (int i = 0; i < 100; ++i) blocks.push_back(allocate(1000));
    return 0;
  });
  for (void* at : blocks) release(at);
  stop_native_sampling();
  EXPECT_EQ(counter.samples, 0U);
}

TEST_F(NativeSampling, RawBlocksAreThere) {
  constexpr std::uint64_t kMean = 64;
  testing::CLibraryTable table;
  Counter counter(kMean);
  ASSERT_TRUE(start_native_sampling(counter, table, kMean, {}).ok());
  const Allocator raw = table.get(Domain::kRaw);
  void* at = raw.malloc(raw.context, 1000);
  EXPECT_EQ(counter.samples, 1U);
  at = raw.realloc(raw.context, at, 5000);
  EXPECT_EQ(counter.samples, 2U);
  EXPECT_EQ(counter.ends, 1U);
  raw.free(raw.context, at);
  stop_native_sampling();
  EXPECT_EQ(counter.samples, counter.ends);
  EXPECT_EQ(counter.mallocs, 0U);
  // THEN the table is what it was
  EXPECT_NE(table.get(Domain::kRaw).free, raw.free);
}

TEST(ObjectSampling, OfObjectsWhereThereIsNoGil) {
  // GIVEN a build whose threads all allocate objects at the same time
  constexpr std::uint64_t kMean = 2048;
  constexpr std::uint64_t kThreads = 4, kBlocks = 20'000, kSize = 200, kKept = 1000;
  testing::CLibraryTable table;
  Counter counter(kMean);
  ASSERT_TRUE(start_native_sampling(counter, table, kMean, {.has_all_domains = true}).ok());
  const Allocator objects = table.get(Domain::kObject), memory = table.get(Domain::kMemory);
  std::vector<std::vector<void*>> kept(kThreads);
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        for (std::uint64_t block = 0; block < kBlocks; ++block) {
          const Allocator& from = block % 2 == 0 ? objects : memory;
          void* at = from.malloc(from.context, kSize);
          if (block % 2 == 0 && block < 2 * kKept)
            kept[i].push_back(at);
          else
            from.free(from.context, at);
        }
      });
  }
  // WHEN some are alive at the end
  const std::size_t living = living_native_samples();
  std::size_t found = 0;
  for (const std::vector<void*>& of_thread : kept)
    for (const void* at : of_thread) found += native_sample_at(at) ? 1U : 0U;
  stop_native_sampling();
  // THEN the samples stand for all, every one is known by its address while it lives, and its end or its life is told
  constexpr double kTruth = kThreads * kBlocks * kSize;
  EXPECT_NEAR(counter.bytes, kTruth, kTruth * 0.06);
  EXPECT_EQ(found, living);
  EXPECT_EQ(counter.alive, living);
  EXPECT_EQ(counter.ends + counter.alive, counter.samples);
  EXPECT_NEAR(static_cast<double>(living), kThreads * kKept * kSize / static_cast<double>(kMean), 100);
  // AND all bytes are counted, but for those between two of a thread's looks
  EXPECT_LE(counter.counted, kThreads * kBlocks * kSize);
  EXPECT_GE(counter.counted, kThreads * (kBlocks * kSize - kMean - kSize));
  for (const std::vector<void*>& of_thread : kept)
    for (void* at : of_thread) objects.free(objects.context, at);
  EXPECT_NE(table.get(Domain::kObject).free, objects.free);
}

TEST(ObjectSampling, AnObjectThatIsMovedEndsWhereItIsThen) {
  constexpr std::uint64_t kMean = 64;
  testing::CLibraryTable table;
  Counter counter(kMean);
  ASSERT_TRUE(start_native_sampling(counter, table, kMean, {.has_all_domains = true}).ok());
  const Allocator objects = table.get(Domain::kObject);
  void* at = objects.malloc(objects.context, 100'000);
  at = objects.realloc(objects.context, at, 1000);
  EXPECT_EQ(counter.ends, 1U);
  EXPECT_EQ(counter.ended_at, at);
  EXPECT_EQ(counter.ended_size, 1000U);
  objects.free(objects.context, at);
  EXPECT_EQ(counter.ends, 2U);
  stop_native_sampling();
}

TEST(ObjectSampling, IsCutShortByWhoPutsBackWhatWasThereBefore) {
  // GIVEN hooks of somebody who notes what was there before them, and ours over those
  testing::CLibraryTable table;
  const Allocator before = table.get(Domain::kObject);
  Allocator others = before;
  others.context = &table;
  table.set(Domain::kObject, others);
  Counter counter(64);
  ASSERT_TRUE(start_native_sampling(counter, table, 64, {.has_all_domains = true}).ok());
  EXPECT_EQ(stop_native_sampling(), Stopped::kWhole);
  ASSERT_TRUE(start_native_sampling(counter, table, 64, {.has_all_domains = true}).ok());
  const Allocator ours = table.get(Domain::kObject);
  void* sampled = ours.malloc(ours.context, 1000);
  // WHEN they put it back
  table.set(Domain::kObject, before);
  // THEN the recording says so, and looks at no block that may be gone
  EXPECT_EQ(stop_native_sampling(), Stopped::kCutShort);
  EXPECT_EQ(counter.alive, 0U);
  before.free(before.context, sampled);
  // AND the next one has hooks of its own
  ASSERT_TRUE(start_native_sampling(counter, table, 64, {.has_all_domains = true}).ok());
  const Allocator again = table.get(Domain::kObject);
  again.free(again.context, again.malloc(again.context, 1000));
  EXPECT_EQ(counter.samples, 2U);
  EXPECT_EQ(stop_native_sampling(), Stopped::kWhole);
}

TEST(ObjectSampling, HooksOfOthersMayLieOverOurs) {
  // GIVEN hooks of others that call ours
  testing::CLibraryTable table;
  Counter counter(64);
  ASSERT_TRUE(start_native_sampling(counter, table, 64, {.has_all_domains = true}).ok());
  static Allocator below{};
  below = table.get(Domain::kObject);
  const auto free = [](void* context, void* at) { below.free(context, at); };
  table.set(Domain::kObject, {below.context, below.malloc, below.calloc, below.realloc, free});
  EXPECT_EQ(stop_native_sampling(), Stopped::kWhole);
  // WHEN a recording starts again THEN they are still the ones that are called, once for a block
  ASSERT_TRUE(start_native_sampling(counter, table, 64, {.has_all_domains = true}).ok());
  const Allocator top = table.get(Domain::kObject);
  top.free(top.context, top.malloc(top.context, 1000));
  EXPECT_EQ(counter.samples, 1U);
  EXPECT_EQ(counter.ends, 1U);
  table.set(Domain::kObject, below);
  EXPECT_EQ(stop_native_sampling(), Stopped::kWhole);
}

TEST_F(NativeSampling, ThreadsAllocateWhileRecordingsComeAndGo) {
  // GIVEN threads that hand blocks to each other
  std::atomic<bool> is_done{false};
  std::array<std::atomic<void*>, 64> slots{};
  std::vector<std::jthread> threads;
  for (std::uint64_t i = 1; i <= 4; ++i)
    threads.emplace_back([&, i] {
      std::uint64_t random = i;
      while (!is_done) {
        const std::uint64_t drawn = next_random(random);
        const std::size_t size = 8 + drawn % 5000;
        auto* block = static_cast<char*>(allocate(size));
        block[0] = block[size - 1] = static_cast<char>(i);
        if (void* before = slots[drawn >> 32U & 63U].exchange(block)) release(before);
      }
    });
  testing::CLibraryTable table;
  std::vector<std::unique_ptr<Counter>> counters;
  for (int i = 0; i < 30; ++i) {
    counters.push_back(std::make_unique<Counter>(512));
    ASSERT_TRUE(start_native_sampling(*counters.back(), table, 512, {.has_malloc = true}).ok());
    while (counters.back()->samples < 1000) std::this_thread::yield();
    stop_native_sampling();
    EXPECT_LE(counters.back()->ends, counters.back()->samples);
    EXPECT_EQ(living_native_samples(), 0U);
  }
  is_done = true;
  threads.clear();
  for (std::atomic<void*>& slot : slots)
    if (void* at = slot.exchange(nullptr)) release(at);
}

TEST_F(NativeSampling, AThreadOfAnEarlierRecordingIsSampledFromItsFirstBlockOn) {
  testing::CLibraryTable table;
  std::barrier turn(2);
  // GIVEN a thread that allocates in a recording of a long distance
  std::jthread thread([&] {
    turn.arrive_and_wait();
    release(allocate(100));
    turn.arrive_and_wait();
    turn.arrive_and_wait();
    for (int i = 0; i < 100; ++i) release(allocate(100));
    turn.arrive_and_wait();
  });
  Counter before(std::uint64_t{1} << 50U);
  ASSERT_TRUE(start_native_sampling(before, table, std::uint64_t{1} << 50U, {.has_malloc = true}).ok());
  turn.arrive_and_wait();
  turn.arrive_and_wait();
  stop_native_sampling();
  // WHEN one of a short distance begins THEN it has samples of that thread from the first bytes
  constexpr std::uint64_t kMean = 250;
  Counter counter(kMean);
  ASSERT_TRUE(start_native_sampling(counter, table, kMean, {.has_malloc = true}).ok());
  const std::uint64_t samples = counter.samples;
  turn.arrive_and_wait();
  turn.arrive_and_wait();
  EXPECT_GT(counter.samples, samples + 5);
  stop_native_sampling();
}

TEST_F(NativeSampling, AChildOfAForkTellsNothing) {
  constexpr std::uint64_t kMean = 64;
  testing::CLibraryTable table;
  Counter counter(kMean);
  ASSERT_TRUE(start_native_sampling(counter, table, kMean, {.has_malloc = true}).ok());
  void* from_before = allocate(10'000);
  const std::uint64_t samples = counter.samples;
  const pid_t child = ::fork();
  if (child == 0) {
    release(from_before);
    release(allocate(10'000));
    ::_exit(counter.samples == samples && counter.ends == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  release(from_before);
  stop_native_sampling();
  EXPECT_EQ(counter.ends, counter.samples);
}

TEST_F(NativeSampling, AChildOfAForkEndsItWhileModulesAreLookedAt) {
  testing::CLibraryTable table;
  Counter counter(1U << 20U);
  ASSERT_TRUE(start_native_sampling(counter, table, 1U << 20U, {.has_malloc = true}).ok());
  // GIVEN a thread that looks for new modules, of which there always are
  constexpr int kForks = 100;
  std::barrier turn(2);
  std::jthread thread([&] {
    for (int i = 0; i < kForks; ++i) {
      if (void* library = ::dlopen("libBrokenLocale.so.1", RTLD_LAZY)) ::dlclose(library);
      turn.arrive_and_wait();
      patch_new_modules();
      turn.arrive_and_wait();
    }
  });
  // WHEN children are made meanwhile THEN each can do without the recording, and waits for nobody's lock
  for (int i = 0; i < kForks; ++i) {
    turn.arrive_and_wait();
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      abandon_native_sampling();
      ::_exit(0);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    turn.arrive_and_wait();
  }
  thread.join();
  stop_native_sampling();
}

// Instructions of a pair of malloc and free of another module, with all that is around them.
long steps_of_pair() {
  for (int i = 0; i < 3; ++i) release(allocate(64));
  return plimsoll::testing::steps_of_one([] { release(allocate(64)); });
}

TEST_F(NativeSampling, ABlockThatIsNoSampleCostsAFewInstructions) {
  const long steps_off = steps_of_pair();
  if (steps_off < 0) GTEST_SKIP() << "this process may not trace its children: no instructions can be counted";
  constexpr std::uint64_t kMean = std::uint64_t{1} << 32U;
  testing::CLibraryTable table;
  Counter counter(kMean);
  ASSERT_TRUE(start_native_sampling(counter, table, kMean, {.has_malloc = true}).ok());
  const long steps_on = steps_of_pair();
  stop_native_sampling();
  RecordProperty("steps_off", static_cast<int>(steps_off));
  RecordProperty("steps_on", static_cast<int>(steps_on));
#if defined(__OPTIMIZE__) && !defined(PLIMSOLL_SANITIZED)  // whose checks are instructions, too
  EXPECT_LE(steps_on - steps_off, 30) << steps_off << " without, " << steps_on << " with";
  // What was recorded leaves nothing behind.
  EXPECT_EQ(steps_of_pair(), steps_off);
#endif
}

}  // namespace
}  // namespace plimsoll::alloc
