// alloc/sampling_hooks_testing.h: a program that allocates, with others' hooks coming and going, and everything that it
// is promised checked on the way: for the fuzzer, and for tests with drawn programs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "alloc/sampling_hooks.h"
#include "alloc/testing.h"

namespace plimsoll::alloc::testing {

// That of somebody who gives blocks, changes their sizes, and takes them back.
template <typename Giver>
Allocator allocator_of(Giver& giver) {
  return {&giver, [](void* self, std::size_t size) { return static_cast<Giver*>(self)->give(size); },
          [](void* self, std::size_t count, std::size_t item) {
            void* at = static_cast<Giver*>(self)->give(count * item);
            return at == nullptr ? at : std::memset(at, 0, count * item);
          },
          [](void* self, void* at, std::size_t size) { return static_cast<Giver*>(self)->change(at, size); },
          [](void* self, void* at) { static_cast<Giver*>(self)->take(at); }};
}

// The runtime's own allocator, as far as the hooks can tell: knows its blocks, and refuses those of others.
class Below {
 public:
  Allocator allocator() { return allocator_of(*this); }
  // The next allocation finds no memory.
  void fail_once() { fails_ = true; }
  // It finds some after all.
  void recover() { fails_ = false; }
  [[nodiscard]] std::size_t living() const { return blocks_.size(); }

  void* give(std::size_t size) {
    if (std::exchange(fails_, false)) return nullptr;
    void* at = std::malloc(size == 0 ? 1 : size);
    blocks_[at] = size;
    return at;
  }
  void* change(void* at, std::size_t size) {
    require(blocks_.contains(at), "only blocks of the allocator below are changed there");
    if (std::exchange(fails_, false)) return nullptr;
    void* moved = std::malloc(size == 0 ? 1 : size);
    std::memcpy(moved, at, std::min(size, blocks_[at]));
    std::free(at);
    blocks_.erase(at);
    blocks_[moved] = size;
    return moved;
  }
  void take(void* at) {
    if (at == nullptr) return;
    require(blocks_.erase(at) == 1, "only blocks of the allocator below are freed there");
    std::free(at);
  }

 private:
  std::map<void*, std::size_t> blocks_;
  bool fails_ = false;
};

// A runtime's allocators, and hooks of another tool, which passes all calls on, on top or not.
class Table final : public AllocatorTable {
 public:
  explicit Table(Below& below) : Table(below.allocator(), below.allocator()) {}
  Table(const Allocator& objects, const Allocator& raw) : plain_{objects, objects, raw}, now_(plain_) {}
  [[nodiscard]] Allocator get(Domain domain) const override { return now_[static_cast<std::size_t>(domain)]; }
  void set(Domain domain, const Allocator& allocator) override { now_[static_cast<std::size_t>(domain)] = allocator; }
  // As Python's name of its allocator, which it knows by what is in the table.
  [[nodiscard]] bool is_plain() const override { return now_ == plain_; }

  [[nodiscard]] bool has_others() const { return has_others_; }
  [[nodiscard]] bool had_others() const { return had_others_; }

  // Another tool begins and ends, as tracemalloc does: it puts back what was there before it.
  void begin_others() {
    if (has_others_) return;
    for (std::size_t i = 0; i < kAllDomains; ++i) {
      replaced_[i] = now_[i];
      now_[i] = {
          &replaced_[i], [](void* to, std::size_t size) { return of(to).malloc(of(to).context, size); },
          [](void* to, std::size_t count, std::size_t item) { return of(to).calloc(of(to).context, count, item); },
          [](void* to, void* at, std::size_t size) { return of(to).realloc(of(to).context, at, size); },
          [](void* to, void* at) { of(to).free(of(to).context, at); }};
    }
    has_others_ = had_others_ = true;
  }
  void end_others() {
    if (std::exchange(has_others_, false)) now_ = replaced_;
  }
  // As if nobody ever had put hooks into it.
  void forget_hooks() {
    now_ = plain_;
    has_others_ = had_others_ = false;
  }

 private:
  static const Allocator& of(void* replaced) { return *static_cast<Allocator*>(replaced); }
  std::array<Allocator, kAllDomains> plain_;
  std::array<Allocator, kAllDomains> now_;
  std::array<Allocator, kAllDomains> replaced_;
  bool has_others_ = false;
  bool had_others_ = false;
};

// Takes down what it is told, and checks that each sample comes once and ends once.
class Witness final : public SampleTaker {
 public:
  std::uint64_t next_number() override { return next_++; }
  bool allocated(const SampledBlock& block, std::uint64_t chance_bytes) override {
    require(chance_bytes >= block.size && chance_bytes >= 1, "a chance comes from no less than the size");
    if (loses_next_) return loses_next_ = false;
    require(alive_.emplace(block.number, block).second, "numbers come once");
    ++samples;
    return true;
  }
  void ended(const void* at, const SampledBlock& block, End end) override {
    const auto found = alive_.find(block.number);
    require(found != alive_.end(), "only samples end, once");
    require((end == End::kMoved ? found->second.size >= block.size : found->second.size == block.size) &&
                found->second.kind == block.kind,
            "the end is that of the sample");
    if (block.size > 0) last_byte = static_cast<const char*>(at)[block.size - 1];  // it is still there
    if (end != End::kOfTime) alive_.erase(found);
  }
  void count_bytes(std::uint64_t bytes) override { counted += bytes; }
  void lose_next() { loses_next_ = true; }
  // The recording is over.
  void forget() { alive_.clear(); }

  std::uint64_t samples = 0;
  std::uint64_t counted = 0;
  volatile char last_byte = 0;

 private:
  std::map<std::uint64_t, SampledBlock> alive_;
  std::uint64_t next_ = 0;
  bool loses_next_ = false;
};

// A block that a program holds.
struct Held {
  Domain domain{};
  unsigned char* at = nullptr;
  std::size_t size = 0;
  unsigned char pattern = 0;
  std::uint32_t stack = 0;      // under which exact books have it; 0: they do not
  std::size_t booked_size = 0;  // with which they have it

  // The first bytes are those that were put there.
  void check(std::size_t bytes) const {
    for (std::size_t i = 0; i < bytes; ++i) require(at[i] == pattern, "a block keeps what is in it");
  }
};

// The blocks that a program holds, each with a pattern of its own, and none over another.
class HeldBlocks {
 public:
  [[nodiscard]] bool is_empty() const { return blocks_.empty(); }
  [[nodiscard]] std::vector<Held>& all() { return blocks_; }

  // A new one.
  void hold(Held held) {
    require(reinterpret_cast<std::uintptr_t>(held.at) % 16 == 0, "blocks are aligned");
    const auto next = addresses_.lower_bound(held.at);
    require(next == addresses_.end() || held.at + held.size <= next->first, "a block ends before the next one");
    require(next == addresses_.begin() || std::prev(next)->first + std::prev(next)->second <= held.at,
            "a block begins behind the one before");
    held.pattern = static_cast<unsigned char>(++patterns_);
    std::memset(held.at, held.pattern, held.size);
    put_back(held);
  }
  // One that was taken, and stays as it was.
  void put_back(const Held& held) {
    held.check(held.size);
    addresses_[held.at] = std::max<std::size_t>(held.size, 1);
    blocks_.push_back(held);
  }
  Held take(std::size_t number) {
    Held& at = blocks_[number % blocks_.size()];
    const Held held = std::exchange(at, blocks_.back());
    blocks_.pop_back();
    addresses_.erase(held.at);
    held.check(held.size);
    return held;
  }

 private:
  std::vector<Held> blocks_;
  std::map<unsigned char*, std::size_t> addresses_;
  unsigned patterns_ = 0;
};

// A block from an allocator; nullptr if it has none.
inline void* allocate_from(const Allocator& from, std::size_t size, bool zeroed) {
  void* at = zeroed ? from.calloc(from.context, 1, size) : from.malloc(from.context, size);
  if (at == nullptr || !zeroed) return at;
  for (std::size_t i = 0; i < size; ++i) require(static_cast<unsigned char*>(at)[i] == 0, "calloc gives zeros");
  return at;
}

// A size of one of four kinds.
inline std::size_t size_of_kind(unsigned kind, std::uint8_t how_much) {
  switch (kind) {
    case 0: return how_much;                           // 0 to 255
    case 1: return 256 + std::size_t{how_much} * 2;    // about the largest small block
    case 2: return std::size_t{how_much} * 97;         // to 24 KiB
    default: return 505 + std::size_t{how_much} % 16;  // at the border
  }
}

// The program: does what bytes say, in steps, and checks every block. What it leaves behind is nothing.
class Program {
 public:
  Program() : table_(below_) {}
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    while (!blocks_.is_empty()) free_block(0);
    table_.end_others();
    stop();
    require(below_.living() == 0, "all blocks of the allocator below have been freed");
    require(living_samples() == 0 || table_.had_others(), "no sample is alive when no block is");
    forget_hooks();
  }

  // One step: three bytes say which.
  void step(std::uint8_t what, std::uint8_t which, std::uint8_t how_much) {
    const auto domain = static_cast<Domain>(which & 1U);
    const std::size_t size = size_of_kind(which % 8 / 2, how_much);
    if (what < 90) return allocate(domain, size, what % 3 == 0);
    if (what < 150) return blocks_.is_empty() ? void() : free_block(which * 256U + how_much);
    if (what < 200) return blocks_.is_empty() ? void() : change_block(which, size);
    control(what % 14, how_much);
  }

  Witness witness;

 private:
  void allocate(Domain domain, std::size_t size, bool zeroed) {
    void* at = allocate_from(table_.get(domain), size, zeroed);
    if (at != nullptr) blocks_.hold({domain, static_cast<unsigned char*>(at), size});
  }

  void free_block(std::size_t number) {
    const Held held = blocks_.take(number);
    const Allocator from = table_.get(held.domain);
    from.free(from.context, held.at);
  }

  void change_block(std::size_t number, std::size_t size) {
    Held held = blocks_.take(number);
    const Allocator from = table_.get(held.domain);
    void* moved = from.realloc(from.context, held.at, size);
    if (moved == nullptr) return blocks_.put_back(held);
    held.at = static_cast<unsigned char*>(moved);
    held.check(std::min(held.size, size));
    held.size = size;
    blocks_.hold(held);
  }

  void control(std::uint8_t what, std::uint8_t how_much) {
    switch (what) {
      case 0:
      case 1:
      case 2: return start(std::uint64_t{64} << how_much % 12, how_much % 16 == 0);
      case 3: return stop();
      case 4: {
        abandon_sampling();
        is_recording_ = false;
        return witness.forget();
      }
      case 5: return pause_sampling();
      case 6: return resume_sampling();
      case 7:
      case 8: return table_.begin_others();
      case 9:
      case 10: return table_.end_others();
      case 11: return below_.fail_once();
      case 12: return witness.lose_next();
      default: (void)lock_heap();
    }
  }

  void start(std::uint64_t distance, bool at_once) {
    if (is_recording_) stop();
    const Interpreters interpreters = at_once ? Interpreters::kAtOnce : Interpreters::kInTurns;
    is_recording_ = start_sampling(witness, table_, distance, interpreters).ok();
  }

  void stop() {
    if (!std::exchange(is_recording_, false)) return;
    require(stop_sampling() == Stopped::kWhole || table_.had_others(), "only others can take out the hooks");
    witness.forget();
  }

  Below below_;
  Table table_;
  HeldBlocks blocks_;
  bool is_recording_ = false;
};

}  // namespace plimsoll::alloc::testing
