// Hooks that are still in place though their recording is over: as it has come to its end by itself, or as other tools'
// lay over them when it was stopped.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <optional>

#include "alloc/exact_hooks.h"
#include "alloc/native_sampling.h"
#include "alloc/sampling_hooks.h"
#include "alloc/testing.h"

namespace plimsoll::alloc {
namespace {

// Counts samples.
class Counter final : public SampleTaker {
 public:
  std::uint64_t next_number() override { return ++numbers_; }
  bool allocated(const SampledBlock&, std::uint64_t) override {
    ++samples;
    return true;
  }
  void ended(const void*, const SampledBlock&, End) override { ++ends; }
  void count_bytes(std::uint64_t) override {}

  int samples = 0, ends = 0;

 private:
  std::uint64_t numbers_ = 0;
};

// Counts what is booked.
class Bookkeeper final : public ExactTaker {
 public:
  Bookkeeper() {
    find_key = {[](void*) { return StackKey{}; }, nullptr};
    clock_ns = &clock_;
  }
  std::uint32_t stack() override { return 1; }
  std::uint32_t stack_of(StackKey&) override { return 1; }
  [[nodiscard]] bool is_attached() const override { return true; }
  [[nodiscard]] bool is_gil_free() const override { return false; }
  void lost() override { ADD_FAILURE() << "there is no memory"; }
  void failed() override { ADD_FAILURE() << "there is no memory"; }
  void closed(std::uint8_t, std::int64_t, ExactRows rows, std::int64_t) override {
    for (const ExactRow& row : rows) {
      if (row.change == ExactChange::kBorn) born[static_cast<std::size_t>(row.domain)] += row.bytes;
      if (row.change == ExactChange::kFreed || row.change == ExactChange::kFreedAtOnce) ended += row.bytes;
    }
  }
  void logged(EventBatch batch) override {
    log_.read(batch, [&](AllocationEvent event, const testing::LogReader::Block& block) {
      const auto bytes = static_cast<std::int64_t>(block.size);
      (event == AllocationEvent::kAllocated ? born[static_cast<std::size_t>(block.domain)] : ended) += bytes;
    });
  }
  void alive(const void*, BlockBooks::Token, const BlockBooks::Facts&) override {}

  std::array<std::int64_t, kAllDomains> born{};  // bytes
  std::int64_t ended = 0;

 private:
  std::atomic<std::int64_t> clock_{0};
  testing::LogReader log_;
};

// Another tool's hooks over all allocators, which pass all on.
class Others {
 public:
  explicit Others(AllocatorTable& table) : table_(table) {
    for (std::size_t i = 0; i < kAllDomains; ++i) {
      below_[i] = table.get(static_cast<Domain>(i));
      table.set(
          static_cast<Domain>(i),
          {&below_[i], [](void* to, std::size_t size) { return of(to).malloc(of(to).context, size); },
           [](void* to, std::size_t count, std::size_t item) { return of(to).calloc(of(to).context, count, item); },
           [](void* to, void* at, std::size_t size) { return of(to).realloc(of(to).context, at, size); },
           [](void* to, void* at) { of(to).free(of(to).context, at); }});
    }
  }
  Others(const Others&) = delete;
  Others& operator=(const Others&) = delete;
  ~Others() {
    for (std::size_t i = 0; i < kAllDomains; ++i) table_.set(static_cast<Domain>(i), below_[i]);
  }

 private:
  static const Allocator& of(void* below) { return *static_cast<Allocator*>(below); }
  AllocatorTable& table_;
  std::array<Allocator, kAllDomains> below_;
};

class LeftHooks : public ::testing::Test {
 protected:
  void TearDown() override { forget_hooks(); }

  // As where there is no GIL: hooks of both kinds are over all allocators.
  Status start_books() { return start_exact(books_, table_, Interpreters::kAtOnce); }
  Status start_samples() { return start_native_sampling(counter_, table_, 64, {.has_all_domains = true}); }
  // A block of each allocator comes and goes.
  void allocate() {
    for (const Domain domain : {Domain::kObject, Domain::kMemory, Domain::kRaw}) {
      const Allocator from = table_.get(domain);
      from.free(from.context, from.realloc(from.context, from.calloc(from.context, 1, 700), 1000));
      from.free(from.context, from.malloc(from.context, 3000));
    }
  }

  static constexpr std::array<std::int64_t, kAllDomains> kBytes = {4700, 4700, 4700};
  testing::CLibraryTable table_;
  Bookkeeper books_;
  Counter counter_;
};

TEST_F(LeftHooks, BookNothingButFreesWhenNobodyWantsToBeToldAnyMore) {
  constexpr auto kObject = static_cast<std::size_t>(Domain::kObject);
  for (const ExactDetail detail : {ExactDetail::kSums, ExactDetail::kEvents}) {
    // GIVEN a recording that has come to its end by itself
    Bookkeeper books, again;
    ASSERT_TRUE(start_exact(books, table_, Interpreters::kInTurns, ExactScope::kPython, detail).ok());
    const Allocator objects = table_.get(Domain::kObject);
    void* before = objects.malloc(objects.context, 10);
    silence_exact();
    // WHEN the program goes on, and ends a pause that there is not THEN nothing is booked of it but what ends
    resume_exact();
    void* after = objects.malloc(objects.context, 20);
    after = objects.realloc(objects.context, after, 700);
    objects.free(objects.context, before);
    allocate();
    EXPECT_EQ(stop_exact(), Stopped::kWhole);
    EXPECT_EQ(books.born, (std::array<std::int64_t, kAllDomains>{10, 0, 0}));
    EXPECT_EQ(books.ended, 10);
    objects.free(objects.context, after);
    // AND the next recording books again
    ASSERT_TRUE(start_exact(again, table_, Interpreters::kInTurns, ExactScope::kPython, detail).ok());
    allocate();
    stop_exact();
    EXPECT_EQ(again.born[kObject], kBytes[kObject]);
  }
}

TEST_F(LeftHooks, ThatHaveComeBackAreTakenOutByTheNextRecordingOfWhateverBooks) {
  const auto now = [&] {
    std::array<Allocator, kAllDomains> all;
    for (std::size_t i = 0; i < kAllDomains; ++i) all[i] = table_.get(static_cast<Domain>(i));
    return all;
  };
  const std::array before = now();
  for (const Interpreters interpreters : {Interpreters::kInTurns, Interpreters::kAtOnce}) {
    for (const ExactDetail detail : {ExactDetail::kEvents, ExactDetail::kSums}) {
      // GIVEN hooks of one kind of books, over the heap of ours, that others' lay over which are gone
      const ExactDetail other = detail == ExactDetail::kSums ? ExactDetail::kEvents : ExactDetail::kSums;
      ASSERT_TRUE(start_exact(books_, table_, Interpreters::kInTurns, ExactScope::kPython, detail).ok());
      std::optional<Others> others(std::in_place, table_);
      EXPECT_EQ(stop_exact(), Stopped::kWhole);
      others.reset();
      EXPECT_NE(now()[0].malloc, before[0].malloc);
      // WHEN another recording comes and goes THEN it is whole, and has left none
      Bookkeeper books;
      ASSERT_TRUE(start_exact(books, table_, interpreters, ExactScope::kPython, other).ok());
      allocate();
      EXPECT_EQ(stop_exact(), Stopped::kWhole);
      EXPECT_EQ(books.born, kBytes);
      for (std::size_t i = 0; i < kAllDomains; ++i) EXPECT_EQ(now()[i].malloc, before[i].malloc);
    }
  }
}

TEST_F(LeftHooks, OfSamplingDoNotHideThoseOfExactBooksBelow) {
  // GIVEN exact hooks that were left, hooks that sample over those, and others' over all
  ASSERT_TRUE(start_books().ok());
  std::optional<Others> others(std::in_place, table_);
  EXPECT_EQ(stop_exact(), Stopped::kWhole);
  others.reset();
  ASSERT_TRUE(start_samples().ok());
  others.emplace(table_);
  EXPECT_EQ(stop_native_sampling(), Stopped::kWhole);
  // WHEN another exact recording begins THEN each block is booked once
  books_.born = {};
  ASSERT_TRUE(start_books().ok());
  allocate();
  EXPECT_EQ(stop_exact(), Stopped::kWhole);
  EXPECT_EQ(books_.born, kBytes);
}

TEST_F(LeftHooks, OfExactBooksDoNotHideWhatIsSampledBelow) {
  // GIVEN hooks that sample and were left, exact hooks over those, and others' over all
  ASSERT_TRUE(start_samples().ok());
  std::optional<Others> others(std::in_place, table_);
  EXPECT_EQ(stop_native_sampling(), Stopped::kWhole);
  others.reset();
  ASSERT_TRUE(start_books().ok());
  others.emplace(table_);
  EXPECT_EQ(stop_exact(), Stopped::kWhole);
  // WHEN allocations are sampled again THEN each block is a sample, as large as it is
  counter_.samples = counter_.ends = 0;
  ASSERT_TRUE(start_samples().ok());
  allocate();
  EXPECT_EQ(stop_native_sampling(), Stopped::kWhole);
  EXPECT_EQ(counter_.samples, 9);
  EXPECT_EQ(counter_.ends, 9);
}

}  // namespace
}  // namespace plimsoll::alloc
