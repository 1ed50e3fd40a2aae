// Recordings of allocations of one kind after those of the other, where hooks of both were left in place: other tools'
// lay over them when a recording ended.
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
    for (const ExactRow& row : rows)
      if (row.change == ExactChange::kBorn) born[static_cast<std::size_t>(row.domain)] += row.bytes;
  }
  void logged(EventBatch) override {}
  void alive(const void*, BlockBooks::Token, const BlockBooks::Facts&) override {}

  std::array<std::int64_t, kAllDomains> born{};  // bytes

 private:
  std::atomic<std::int64_t> clock_{0};
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
