#include "alloc/exact_hooks.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "alloc/sampling_hooks.h"
#include "alloc/testing.h"
#include "base/clock.h"

namespace plimsoll::alloc {
namespace {

// A runtime whose object allocator turns to the raw one for what is large, as pymalloc does.
class Runtime final : public AllocatorTable {
 public:
  Runtime() { reset(); }
  // It is as it was, without any hooks.
  void reset() {
    is_plain_now = true;
    small_given = 0;
    const Allocator plain{this, [](void*, std::size_t size) { return std::malloc(size == 0 ? 1 : size); },
                          [](void*, std::size_t count, std::size_t item) { return std::calloc(count, item); },
                          [](void* self, void* at, std::size_t size) {
                            return static_cast<Runtime*>(self)->fails ? nullptr : std::realloc(at, size);
                          },
                          [](void*, void* at) { std::free(at); }};
    now_.fill(plain);
    Allocator& object = now_[0];
    object.malloc = [](void* self, std::size_t size) {
      const Allocator raw = static_cast<Runtime*>(self)->get(Domain::kRaw);
      if (size > 512) return raw.malloc(raw.context, size);
      ++static_cast<Runtime*>(self)->small_given;
      return std::malloc(size);
    };
    object.free = [](void* self, void* at) {
      const Allocator raw = static_cast<Runtime*>(self)->get(Domain::kRaw);
      raw.free(raw.context, at);
    };
  }
  [[nodiscard]] Allocator get(Domain domain) const override {
    const std::lock_guard guard(mutex_);
    return now_[static_cast<std::size_t>(domain)];
  }
  void set(Domain domain, const Allocator& allocator) override {
    const std::lock_guard guard(mutex_);
    now_[static_cast<std::size_t>(domain)] = allocator;
  }
  [[nodiscard]] bool is_plain() const override { return is_plain_now; }

  // (The function may be of one moment, and the context of the next.)
  void* malloc(Domain domain, std::size_t size) { return get(domain).malloc(get(domain).context, size); }
  void* realloc(Domain domain, void* at, std::size_t size) {
    return get(domain).realloc(get(domain).context, at, size);
  }
  void free(Domain domain, void* at) { get(domain).free(get(domain).context, at); }
  bool fails = false;
  bool is_plain_now = true;
  int small_given = 0;  // blocks of objects

 private:
  mutable std::mutex mutex_;
  std::array<Allocator, kAllDomains> now_;
};

// Adds up what it is told.
class Accountant final : public ExactTaker {
 public:
  Accountant() {
    find_key = {[](void* self) { return StackKey{7, static_cast<Accountant*>(self)->current_key}; }, this};
    clock_ns = &clock_;
  }
  std::uint32_t stack() override { return current_stack; }
  std::uint32_t stack_of(StackKey& key) override {
    ++asked_for_stacks;
    if (!is_key_right) key = {};
    return current_stack;
  }
  [[nodiscard]] bool is_attached() const override { return is_with_gil; }
  [[nodiscard]] bool is_gil_free() const override { return is_idle; }
  void lost() override { ++lost_blocks; }
  void failed() override { ++failures; }
  void closed(std::uint8_t, std::int64_t at_ns, ExactRows rows, std::int64_t) override {
    if (has_no_memory) throw std::bad_alloc();
    epoch_ends.push_back(at_ns);
    for (const ExactRow& row : rows) {
      if (row.change == ExactChange::kPeak) continue;
      if (row.change == ExactChange::kBorn) of_stack[row.stack] += row.blocks;
      const bool is_born = row.change == ExactChange::kBorn;
      if (is_born) born[row.domain] += row.bytes;
      live[row.domain] += is_born ? row.bytes : -row.bytes;
    }
  }
  void logged(EventBatch batch) override {
    if (has_no_memory) throw std::bad_alloc();
    log.read(batch, [&](AllocationEvent event, const testing::LogReader::Block& block) {
      const bool is_born = event == AllocationEvent::kAllocated;
      if (is_born) born[block.domain] += static_cast<std::int64_t>(block.size);
      live[block.domain] += static_cast<std::int64_t>(is_born ? block.size : -block.size);
      moved += event == AllocationEvent::kMoved ? 1 : 0;
    });
    words += batch.words.size();
    if (deals_with_words) take_words_back(std::move(batch.words));
  }
  void alive(const void*, BlockBooks::Token token, const BlockBooks::Facts& facts) override {
    alive_bytes += facts.size;
    alive_slots.push_back(EventLog::slot_of(token));
  }

  std::uint32_t current_stack = 1;
  std::uint64_t current_key = 0;
  bool is_key_right = true;
  int asked_for_stacks = 0;
  bool is_with_gil = true;
  std::atomic<bool> is_idle{false};
  std::vector<std::int64_t> epoch_ends;
  int lost_blocks = 0;
  bool has_no_memory = false;  // for what it is told
  int failures = 0;
  std::size_t alive_bytes = 0;
  std::vector<std::uint32_t> alive_slots;
  testing::LogReader log;
  int moved = 0;
  std::size_t words = 0;
  bool deals_with_words = true;
  std::map<Domain, std::int64_t> born, live;
  std::map<std::uint32_t, std::int64_t> of_stack;  // blocks

 private:
  std::atomic<std::int64_t> clock_{0};
};

// The process has one set of hooks, which point to these for ever.
Runtime& runtime() {
  static Runtime only;
  return only;
}

// Leaves nothing behind.
class ExactHooks : public ::testing::Test {
 protected:
  void TearDown() override {
    runtime().reset();
    forget_hooks();
  }
};

TEST_F(ExactHooks, EveryBlockIsBookedOnce) {
  // GIVEN blocks of all allocators, one from before, large ones that the object allocator has of the raw one
  Accountant books;
  void* before = runtime().malloc(Domain::kObject, 64);
  ASSERT_TRUE(start_exact(books, runtime(), Interpreters::kInTurns).ok());
  void* small = runtime().malloc(Domain::kObject, 100);
  void* large = runtime().malloc(Domain::kObject, 10'000);
  void* memory = runtime().malloc(Domain::kMemory, 30);
  void* raw = runtime().malloc(Domain::kRaw, 7);
  runtime().free(Domain::kObject, before);
  runtime().free(Domain::kObject, large);
  // WHEN the recording ends THEN each is there, with the bytes that were asked for, in its own domain
  EXPECT_EQ(stop_exact(), Stopped::kWhole);
  EXPECT_EQ(books.born[Domain::kObject], 10'100);
  EXPECT_EQ(books.live[Domain::kObject], 100);
  EXPECT_EQ(books.live[Domain::kMemory], 30);
  EXPECT_EQ(books.born[Domain::kRaw], 7);
  EXPECT_EQ(books.alive_bytes, 130U);  // of the two whose memory can be looked at
  // AND the blocks can be freed without the hooks
  runtime().free(Domain::kObject, small);
  runtime().free(Domain::kMemory, memory);
  runtime().free(Domain::kRaw, raw);
}

TEST_F(ExactHooks, AStackIsAskedForOnceIfItHasAKey) {
  Accountant books;
  ASSERT_TRUE(start_exact(books, runtime(), Interpreters::kInTurns).ok());
  const auto allocate = [&](std::uint32_t stack, std::uint64_t key, std::size_t size) {
    books.current_stack = stack;
    books.current_key = key;
    runtime().free(Domain::kObject, runtime().malloc(Domain::kObject, size));
  };
  // GIVEN a stack with a key, one without, and one whose key does not stand for it
  for (int i = 0; i < 10; ++i) allocate(1, 101, 24);
  EXPECT_EQ(books.asked_for_stacks, 1);
  for (int i = 0; i < 10; ++i) allocate(2, 0, 24);
  EXPECT_EQ(books.asked_for_stacks, 11);
  books.is_key_right = false;
  for (int i = 0; i < 10; ++i) allocate(3, 103, 24);
  EXPECT_EQ(books.asked_for_stacks, 21);
  // AND large blocks of the first; and another stack with the key that did not stand for one
  books.is_key_right = true;
  for (int i = 0; i < 10; ++i) allocate(1, 101, 1000);
  EXPECT_EQ(books.asked_for_stacks, 22);
  allocate(4, 103, 24);
  // WHEN the recording ends THEN each has its blocks
  stop_exact();
  EXPECT_EQ(books.of_stack, (std::map<std::uint32_t, std::int64_t>{{1, 20}, {2, 10}, {3, 10}, {4, 1}}));
}

TEST_F(ExactHooks, AReallocIsTheEndOfOneBlockAndTheBeginningOfAnother) {
  Accountant books;
  ASSERT_TRUE(start_exact(books, runtime(), Interpreters::kAtOnce).ok());
  void* at = runtime().malloc(Domain::kMemory, 100);
  at = runtime().realloc(Domain::kMemory, at, 5000);
  at = runtime().realloc(Domain::kMemory, at, 50);
  // WHEN there is no memory for another THEN the block stays what it was
  runtime().fails = true;
  EXPECT_EQ(runtime().realloc(Domain::kMemory, at, 9000), nullptr);
  runtime().fails = false;
  stop_exact();
  EXPECT_EQ(books.born[Domain::kMemory], 5150);
  EXPECT_EQ(books.live[Domain::kMemory], 50);
  runtime().free(Domain::kMemory, at);
}

TEST_F(ExactHooks, WhatTheRawAllocatorDoesWithoutTheGilIsBookedLater) {
  Accountant books;
  ASSERT_TRUE(start_exact(books, runtime(), Interpreters::kInTurns).ok());
  books.is_with_gil = false;
  void* kept = runtime().malloc(Domain::kRaw, 1000);
  runtime().free(Domain::kRaw, runtime().malloc(Domain::kRaw, 24));
  books.is_with_gil = true;
  stop_exact();
  EXPECT_EQ(books.born[Domain::kRaw], 1024);
  EXPECT_EQ(books.live[Domain::kRaw], 1000);
  runtime().free(Domain::kRaw, kept);
}

TEST_F(ExactHooks, ARawBlockThatCouldNotBeMovedStaysWhatItWas) {
  for (const ExactDetail detail : {ExactDetail::kSums, ExactDetail::kEvents}) {
    Accountant books;
    ASSERT_TRUE(start_exact(books, runtime(), Interpreters::kInTurns, ExactScope::kPython, detail).ok());
    void* at = runtime().malloc(Domain::kRaw, 1000);
    runtime().fails = true;
    EXPECT_EQ(runtime().realloc(Domain::kRaw, at, 1U << 30U), nullptr);
    runtime().fails = false;
    at = runtime().realloc(Domain::kRaw, at, 3000);
    stop_exact();
    EXPECT_EQ(books.born[Domain::kRaw], 4000);
    EXPECT_EQ(books.live[Domain::kRaw], 3000);
    runtime().free(Domain::kRaw, at);
  }
}

TEST_F(ExactHooks, WhatAProgramHasAllocatedBeforeItBecameIdleIsHandedOver) {
  for (const ExactDetail detail : {ExactDetail::kSums, ExactDetail::kEvents}) {
    // GIVEN a program that has been asked for an epoch, and does not allocate
    Accountant books;
    ASSERT_TRUE(start_exact(books, runtime(), Interpreters::kInTurns, ExactScope::kPython, detail).ok());
    void* first = runtime().malloc(Domain::kObject, 100);
    ask_for_exact_epoch();
    // WHEN somebody has the GIL THEN the books are left alone
    hand_over_exact_epoch();
    EXPECT_EQ(books.born[Domain::kObject], 0);
    // WHEN nobody has THEN all is told that was allocated
    books.is_idle = true;
    hand_over_exact_epoch();
    EXPECT_EQ(books.born[Domain::kObject], 100);
    // AND what follows is told as ever
    books.is_idle = false;
    void* second = runtime().malloc(Domain::kObject, 30);
    runtime().free(Domain::kObject, first);
    stop_exact();
    EXPECT_EQ(books.born[Domain::kObject], 130);
    EXPECT_EQ(books.live[Domain::kObject], 30);
    runtime().free(Domain::kObject, second);
  }
}

TEST_F(ExactHooks, AnEpochEndsWhenItIsAskedForWhateverComesNextAndWhenever) {
  // GIVEN two blocks, of two allocators, and a moment at which an epoch is asked for
  for (const bool is_moved : {false, true}) {
    Accountant books;
    ASSERT_TRUE(start_exact(books, runtime(), Interpreters::kInTurns).ok());
    void* at = runtime().malloc(Domain::kMemory, 100);
    const std::int64_t before_ns = monotonic_ns();
    ask_for_exact_epoch();
    const std::int64_t after_ns = monotonic_ns();
    while (monotonic_ns() == after_ns) {
    }
    // WHEN the next event is a block's end THEN that is not of the epoch
    if (is_moved)
      at = runtime().realloc(Domain::kMemory, at, 20);
    else
      runtime().free(Domain::kMemory, at);
    EXPECT_EQ(books.live[Domain::kMemory], 100);
    ASSERT_EQ(books.epoch_ends.size(), 1U);
    EXPECT_GE(books.epoch_ends[0], before_ns);
    EXPECT_LE(books.epoch_ends[0], after_ns);
    // AND a question to which there is nothing to tell makes no epoch
    close_exact_epoch();
    ask_for_exact_epoch();
    books.is_idle = true;
    hand_over_exact_epoch();
    EXPECT_EQ(books.epoch_ends.size(), 2U);
    stop_exact();
    if (is_moved) runtime().free(Domain::kMemory, at);
  }
}

TEST_F(ExactHooks, WhoeverTakesTheGilWhileTheBooksAreHandedOverWaitsForThem) {
  for (const ExactDetail detail : {ExactDetail::kSums, ExactDetail::kEvents}) {
    // GIVEN two threads that allocate in turns, and a third that fetches what they have
    Accountant books;
    std::mutex gil;
    const auto with_gil = [&](auto event) {
      const std::lock_guard guard(gil);
      books.is_idle = false;
      event();
      books.is_idle = true;
    };
    ASSERT_TRUE(start_exact(books, runtime(), Interpreters::kInTurns, ExactScope::kPython, detail).ok());
    books.is_idle = true;
    constexpr int kRoundsAtLeast = 20'000;
    constexpr int kFetchesAtLeast = 100;
    std::atomic<int> at_work{2}, fetched{0}, rounds{0};
    const auto work = [&] {
      int done = 0;
      for (; done < kRoundsAtLeast || fetched.load() < kFetchesAtLeast; ++done) {
        void* at = nullptr;
        with_gil([&] { at = runtime().malloc(Domain::kMemory, 16); });
        with_gil([&] { runtime().free(Domain::kMemory, at); });
      }
      rounds.fetch_add(done);
      at_work.fetch_sub(1);
    };
    std::thread one(work);
    std::thread other(work);
    for (; at_work.load() != 0; fetched.fetch_add(1)) {
      ask_for_exact_epoch();
      hand_over_exact_epoch();
    }
    one.join();
    other.join();
    // WHEN they are done THEN no block is missing, or there twice
    stop_exact();
    EXPECT_EQ(books.born[Domain::kMemory], std::int64_t{rounds.load()} * 16);
    EXPECT_EQ(books.live[Domain::kMemory], 0);
  }
}

TEST_F(ExactHooks, NothingIsBookedWhilePausedButFrees) {
  Accountant books;
  ASSERT_TRUE(start_exact(books, runtime(), Interpreters::kInTurns).ok());
  void* first = runtime().malloc(Domain::kObject, 10);
  pause_exact();
  void* second = runtime().malloc(Domain::kObject, 20);
  runtime().free(Domain::kObject, first);
  resume_exact();
  stop_exact();
  EXPECT_EQ(books.born[Domain::kObject], 10);
  EXPECT_EQ(books.live[Domain::kObject], 0);
  runtime().free(Domain::kObject, second);
}

TEST_F(ExactHooks, WhatTheRawAllocatorDoesWithoutTheGilIsNotBookedInAPauseEither) {
  Accountant books;
  ASSERT_TRUE(start_exact(books, runtime(), Interpreters::kInTurns).ok());
  books.is_with_gil = false;
  void* before = runtime().malloc(Domain::kRaw, 1000);
  pause_exact();
  void* meanwhile = runtime().malloc(Domain::kRaw, 24);
  runtime().free(Domain::kRaw, before);
  resume_exact();
  books.is_with_gil = true;
  stop_exact();
  EXPECT_EQ(books.born[Domain::kRaw], 1000);
  EXPECT_EQ(books.live[Domain::kRaw], 0);
  runtime().free(Domain::kRaw, meanwhile);
}

TEST_F(ExactHooks, HooksThatWereTakenOutAreNoticed) {
  // GIVEN another tool that was there before, and puts back what was there before it
  Accountant books;
  const Allocator before = runtime().get(Domain::kObject);
  runtime().is_plain_now = false;
  ASSERT_TRUE(start_exact(books, runtime(), Interpreters::kInTurns).ok());
  void* block = runtime().malloc(Domain::kObject, 10);
  runtime().set(Domain::kObject, before);
  // WHEN the recording ends THEN it says so, and looks at no block that may be gone
  EXPECT_EQ(stop_exact(), Stopped::kCutShort);
  EXPECT_EQ(books.alive_bytes, 0U);
  runtime().free(Domain::kObject, block);
}

TEST_F(ExactHooks, EachEventIsToldInOrder) {
  // GIVEN a recording of events, and blocks that come, go, grow and stay
  Accountant books;
  ASSERT_TRUE(start_exact(books, runtime(), Interpreters::kInTurns, ExactScope::kPython, ExactDetail::kEvents).ok());
  void* stays = runtime().malloc(Domain::kObject, 100);
  void* grows = runtime().malloc(Domain::kMemory, 50);
  grows = runtime().realloc(Domain::kMemory, grows, 6000);
  for (int i = 0; i < 200'000; ++i) runtime().free(Domain::kObject, runtime().malloc(Domain::kObject, 32));
  runtime().free(Domain::kMemory, grows);
  void* raw = runtime().malloc(Domain::kRaw, 7);
  runtime().free(Domain::kRaw, raw);
  // WHEN it ends THEN the log has all of them, one by one
  EXPECT_EQ(stop_exact(), Stopped::kWhole);
  EXPECT_EQ(books.lost_blocks, 0);
  EXPECT_EQ(books.born[Domain::kObject], 100 + 200'000 * 32);
  EXPECT_EQ(books.live[Domain::kObject], 100);
  EXPECT_EQ(books.born[Domain::kMemory], 6050);
  EXPECT_EQ(books.live[Domain::kMemory], 0);
  EXPECT_EQ(books.moved, 1);
  EXPECT_EQ(books.born[Domain::kRaw], 7);
  // AND says in which slot the block is that is alive; others have come and gone in slots that were used again
  ASSERT_EQ(books.alive_slots.size(), 1U);
  EXPECT_EQ(books.log.at(books.alive_slots[0])->size, 100U);
  EXPECT_LE(books.log.slots(), 3U);
  runtime().free(Domain::kObject, stays);
}

TEST_F(ExactHooks, WhatCannotBeToldForWantOfMemoryIsAFailureAndHurtsNobody) {
  for (const ExactDetail detail : {ExactDetail::kSums, ExactDetail::kEvents}) {
    // GIVEN somebody who has no memory for what has changed
    Accountant books;
    ASSERT_TRUE(start_exact(books, runtime(), Interpreters::kInTurns, ExactScope::kPython, detail).ok());
    books.has_no_memory = true;
    void* before = runtime().malloc(Domain::kObject, 10);
    // WHEN it is to be told, in the middle of an allocation, when asked, and at the end
    ask_for_exact_epoch();
    void* block = runtime().malloc(Domain::kObject, 10);
    EXPECT_EQ(books.failures, 1);
    close_exact_epoch();
    EXPECT_EQ(books.failures, 2);
    EXPECT_EQ(stop_exact(), Stopped::kWhole);
    // THEN it is known each time that the rest is not right without it
    EXPECT_EQ(books.failures, 3);
    runtime().free(Domain::kObject, before);
    runtime().free(Domain::kObject, block);
  }
}

TEST_F(ExactHooks, ALogThatNobodyReadsDoesNotHoldTheProgramUpForEver) {
  // GIVEN a recording whose log is never dealt with
  Accountant books;
  books.deals_with_words = false;
  ASSERT_TRUE(start_exact(books, runtime(), Interpreters::kInTurns, ExactScope::kPython, ExactDetail::kEvents).ok());
  // WHEN a program allocates more than may wait THEN it comes to its end, and no event is lost
  constexpr std::int64_t kPairs = (std::int64_t{1} << 23U) + (std::int64_t{1} << 18U);
  for (std::int64_t i = 0; i < kPairs; ++i) runtime().free(Domain::kObject, runtime().malloc(Domain::kObject, 16));
  EXPECT_EQ(stop_exact(), Stopped::kWhole);
  EXPECT_EQ(books.born[Domain::kObject], 16 * kPairs);
  EXPECT_EQ(books.live[Domain::kObject], 0);
}

// Threads without a GIL that allocate, free, and change the sizes of blocks that they or others allocated, until they
// have done so much or are told to stop. Each block has its size in it, and is checked when it is met again.
class Threads {
 public:
  static constexpr std::size_t kThreads = 4;
  explicit Threads(std::uint64_t most) {
    for (std::size_t i = 0; i < kThreads; ++i) threads_[i] = std::thread([this, i, most] { run(i, most); });
  }
  void stop() { is_over_ = true; }
  void join() {
    for (std::thread& thread : threads_) thread.join();
  }
  // What the blocks that are left are, in bytes; they are freed.
  std::int64_t free_all() {
    std::int64_t bytes = 0;
    for (Place& place : places_) {
      if (place.at == nullptr) continue;
      bytes += static_cast<std::int64_t>(*place.at);
      runtime().free(Domain::kMemory, std::exchange(place.at, nullptr));
    }
    return bytes;
  }

  std::atomic<std::int64_t> allocated = 0;

 private:
  struct Place {
    std::mutex mutex;
    std::size_t* at = nullptr;
  };
  void run(std::size_t number, std::uint64_t most) {
    std::uint64_t random = number + 1;
    for (std::uint64_t i = 0; i < most && !is_over_; ++i) {
      random = random * 6364136223846793005U + 1442695040888963407U;
      Place& place = places_[(random >> 33U) % places_.size()];
      const std::size_t size = 8 + (random >> 40U) % 1200;
      const std::lock_guard guard(place.mutex);
      if (place.at != nullptr && random >> 62U == 0) {
        runtime().free(Domain::kMemory, std::exchange(place.at, nullptr));
        continue;
      }
      void* at = runtime().realloc(Domain::kMemory, place.at, size);  // where there was none, malloc
      testing::require(at != nullptr, "there is memory");
      place.at = static_cast<std::size_t*>(at);
      *place.at = size;
      allocated += static_cast<std::int64_t>(size);
      runtime().free(Domain::kRaw, runtime().malloc(Domain::kRaw, 8));
    }
  }

  std::atomic<bool> is_over_ = false;
  std::array<Place, 64> places_;
  std::array<std::thread, kThreads> threads_;
};

class ExactHooksOfThreads : public ExactHooks, public ::testing::WithParamInterface<ExactDetail> {};

TEST_P(ExactHooksOfThreads, AreBookedToTheLastByte) {
  // GIVEN threads that allocate, free and move blocks at the same time, for as long as the recording lasts
  Accountant books;
  ASSERT_TRUE(start_exact(books, runtime(), Interpreters::kAtOnce, ExactScope::kPython, GetParam()).ok());
  Threads threads(20'000);
  for (int i = 0; i < 20; ++i) close_exact_epoch();
  threads.join();
  // WHEN it ends THEN what was allocated, and what of it is alive, is what the threads say
  EXPECT_EQ(stop_exact(), Stopped::kWhole);
  EXPECT_EQ(books.born[Domain::kMemory], threads.allocated);
  EXPECT_EQ(books.live[Domain::kRaw], 0);
  EXPECT_EQ(books.lost_blocks, 0);
  const std::int64_t left = threads.free_all();
  EXPECT_EQ(books.live[Domain::kMemory], left);
  EXPECT_EQ(books.alive_bytes, static_cast<std::size_t>(left));
}

// Hooks over those of objects, which pass all on.
class Others {
 public:
  Others() : below_(runtime().get(Domain::kObject)) {
    Allocator over = below_;
    over.context = &below_;
    over.malloc = [](void* to, std::size_t size) { return of(to).malloc(of(to).context, size); };
    over.free = [](void* to, void* at) { of(to).free(of(to).context, at); };
    runtime().set(Domain::kObject, over);
  }
  Others(const Others&) = delete;
  Others& operator=(const Others&) = delete;
  ~Others() { runtime().set(Domain::kObject, below_); }

 private:
  static const Allocator& of(void* below) { return *static_cast<Allocator*>(below); }
  Allocator below_;
};

TEST_F(ExactHooks, SmallBlocksComeFromAHeapOfOursWhereNothingElseLiesBelow) {
  // GIVEN blocks from before, during and after a recording
  Accountant books;
  void* before = runtime().malloc(Domain::kObject, 64);
  ASSERT_TRUE(start_exact(books, runtime(), Interpreters::kInTurns).ok());
  runtime().small_given = 0;
  void* small = runtime().malloc(Domain::kObject, 64);
  void* kept = runtime().malloc(Domain::kObject, 64);
  void* large = runtime().malloc(Domain::kObject, 513);
  EXPECT_EQ(runtime().small_given, 0);
  runtime().free(Domain::kObject, before);
  runtime().free(Domain::kObject, small);
  EXPECT_EQ(stop_exact(), Stopped::kWhole);
  EXPECT_EQ(books.live[Domain::kObject], 64 + 513);
  EXPECT_EQ(books.alive_bytes, 64U + 513U);
  // WHEN the recording is over THEN the runtime gives out blocks, and each comes back to whom it is of
  void* after = runtime().malloc(Domain::kObject, 64);
  EXPECT_EQ(runtime().small_given, 1);
  for (void* at : {after, kept, large}) runtime().free(Domain::kObject, at);
  // AND the next one goes on with the heap
  ASSERT_TRUE(start_exact(books, runtime(), Interpreters::kInTurns).ok());
  runtime().free(Domain::kObject, runtime().malloc(Domain::kObject, 64));
  EXPECT_EQ(runtime().small_given, 1);
  stop_exact();
}

TEST_F(ExactHooks, AllBlocksComeFromBelowWhereOthersLieThereOrInterpretersRunAtOnce) {
  for (const bool is_plain : {false, true}) {
    Accountant books;
    runtime().is_plain_now = is_plain;
    const Interpreters interpreters = is_plain ? Interpreters::kAtOnce : Interpreters::kInTurns;
    ASSERT_TRUE(start_exact(books, runtime(), interpreters).ok());
    runtime().small_given = 0;
    runtime().free(Domain::kObject, runtime().malloc(Domain::kObject, 64));
    EXPECT_EQ(runtime().small_given, 1);
    EXPECT_EQ(stop_exact(), Stopped::kWhole);
    EXPECT_EQ(books.born[Domain::kObject], 64);
  }
}

TEST_F(ExactHooks, TheHeapBelowIsLockedWithTheBooks) {
  // GIVEN a recording, and blocks of it
  Accountant books;
  ASSERT_TRUE(start_exact(books, runtime(), Interpreters::kInTurns).ok());
  void* first = runtime().malloc(Domain::kMemory, 40);
  // WHEN interpreters are to run at once from now on, and do
  ASSERT_TRUE(lock_exact().ok());
  runtime().free(Domain::kMemory, first);
  Threads threads(20'000);
  threads.join();
  // THEN the books are right
  EXPECT_EQ(stop_exact(), Stopped::kWhole);
  EXPECT_EQ(books.born[Domain::kMemory], 40 + threads.allocated);
  EXPECT_EQ(books.live[Domain::kMemory], threads.free_all());
}

TEST_F(ExactHooks, HooksThatOthersLieOverAreUsedAgainWithTheHeapBelow) {
  // GIVEN a recording that ends under others' hooks
  Accountant books, again;
  ASSERT_TRUE(start_exact(books, runtime(), Interpreters::kInTurns).ok());
  std::optional<Others> others(std::in_place);
  void* block = runtime().malloc(Domain::kObject, 100);
  EXPECT_EQ(stop_exact(), Stopped::kWhole);
  EXPECT_EQ(books.live[Domain::kObject], 100);
  // AND whose heap gives nothing any more, as nobody sees to its lock
  runtime().small_given = 0;
  runtime().free(Domain::kObject, runtime().malloc(Domain::kObject, 64));
  EXPECT_EQ(runtime().small_given, 1);
  // WHEN another begins there, and ends when they are gone THEN it is whole
  ASSERT_TRUE(start_exact(again, runtime(), Interpreters::kInTurns).ok());
  void* another = runtime().malloc(Domain::kObject, 200);
  runtime().free(Domain::kObject, block);
  others.reset();
  EXPECT_EQ(stop_exact(), Stopped::kWhole);
  EXPECT_EQ(again.live[Domain::kObject], 200);
  runtime().free(Domain::kObject, another);
  // AND interpreters may be added, whose blocks are given out under a lock
  EXPECT_TRUE(lock_exact().ok());
}

TEST_F(ExactHooks, BlocksOfARecordingBeforeAreFreedUnderALockIfInterpretersRunAtOnce) {
  // GIVEN blocks of the heap
  Accountant books, again;
  ASSERT_TRUE(start_exact(books, runtime(), Interpreters::kInTurns).ok());
  std::array<std::vector<void*>, 2> blocks;
  for (int i = 0; i < 100'000; ++i) blocks[i % 2].push_back(runtime().malloc(Domain::kMemory, 64));
  stop_exact();
  // WHEN another recording is of interpreters that run at once, and they free those
  ASSERT_TRUE(start_exact(again, runtime(), Interpreters::kAtOnce).ok());
  const auto free_all = [](const std::vector<void*>& all) {
    for (void* at : all) runtime().free(Domain::kMemory, at);
  };
  std::thread other([&] { free_all(blocks[0]); });
  free_all(blocks[1]);
  other.join();
  // THEN nothing is wrong (which ThreadSanitizer says), and none of them is booked
  EXPECT_EQ(stop_exact(), Stopped::kWhole);
  EXPECT_EQ(again.live[Domain::kMemory], 0);
}

TEST_F(ExactHooks, AHeapThatCanOnlyBePutBelowOneOfTheAllocatorsIsNotUsed) {
  // GIVEN what a recording leaves, and somebody who lies over that of one allocator
  Accountant books, again;
  ASSERT_TRUE(start_exact(books, runtime(), Interpreters::kInTurns).ok());
  void* block = runtime().malloc(Domain::kMemory, 64);
  stop_exact();
  const Others others;
  // WHEN another recording comes and goes THEN all blocks are the runtime's, during it and after
  const auto expect_no_heap = [] {
    runtime().small_given = 0;
    runtime().free(Domain::kObject, runtime().malloc(Domain::kObject, 64));
    EXPECT_EQ(runtime().small_given, 1);
    EXPECT_FALSE(is_heap(Domain::kMemory, runtime().get(Domain::kMemory)));
  };
  ASSERT_TRUE(start_exact(again, runtime(), Interpreters::kInTurns).ok());
  expect_no_heap();
  EXPECT_EQ(stop_exact(), Stopped::kWhole);
  expect_no_heap();
  runtime().free(Domain::kMemory, block);
}

TEST_P(ExactHooksOfThreads, StartAndStopMeanwhile) {
  // GIVEN threads that go on while recordings come and go, some of which end under others' hooks
  Threads threads(~std::uint64_t{0});
  for (int i = 0; i < 40; ++i) {
    Accountant books;
    ASSERT_TRUE(start_exact(books, runtime(), Interpreters::kAtOnce, ExactScope::kPython, GetParam()).ok());
    void* block = runtime().malloc(Domain::kObject, 400);
    std::optional<Others> others;
    if (i % 2 == 0) others.emplace();
    // WHEN a recording ends THEN it is whole, has the block, and no more has ended than has begun
    EXPECT_EQ(stop_exact(), Stopped::kWhole);
    EXPECT_EQ(books.live[Domain::kObject], 400);
    EXPECT_EQ(books.born[Domain::kObject], 400);
    EXPECT_GE(books.live[Domain::kMemory], 0);
    EXPECT_EQ(books.lost_blocks, 0);
    runtime().free(Domain::kObject, block);
  }
  threads.stop();
  threads.join();
  threads.free_all();
}

INSTANTIATE_TEST_SUITE_P(Details, ExactHooksOfThreads, ::testing::Values(ExactDetail::kSums, ExactDetail::kEvents));

}  // namespace
}  // namespace plimsoll::alloc
