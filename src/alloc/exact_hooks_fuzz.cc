// alloc/exact_hooks_fuzz.cc: any sequence of calls of Python's allocators, of exact recordings and of sampled ones, and
// of other tools' hooks, leaves the program with its blocks as they were, and the books right.
//
// What lies below refuses blocks that are not its own: one from the heap of ours that goes past its hooks is noticed.
// (Recordings of malloc are in malloc_hooks_fuzz.cc.)
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>

#include "alloc/exact_hooks.h"
#include "alloc/exact_testing.h"
#include "alloc/sampling_hooks.h"
#include "alloc/sampling_hooks_testing.h"

namespace plimsoll::alloc {
namespace {

using testing::Below;
using testing::Held;
using testing::kOthers;
using testing::require;

// An allocator for objects that gives out small blocks itself, and turns to the raw allocator that is in the table at
// the time for others, as Python's does: hooks over that one are called in the middle of its calls.
class Objects {
 public:
  Objects(Below& below, const AllocatorTable& table) : below_(below.allocator()), table_(table) {}

  void* give(std::size_t size) {
    const bool is_small = size - 1 < kLargest;
    const Allocator from = is_small ? below_ : raw();
    void* at = from.malloc(from.context, size);
    if (is_small && at != nullptr) small_[at] = size;
    return at;
  }
  void take(void* at) {
    const Allocator from = small_.erase(at) == 1 ? below_ : raw();
    from.free(from.context, at);
  }
  void* change(void* at, std::size_t size) {
    if (at == nullptr) return give(size);
    const auto found = small_.find(at);
    if (found == small_.end()) {
      const Allocator from = raw();
      return from.realloc(from.context, at, size);
    }
    const std::size_t old_size = found->second;
    if (size <= old_size && 4 * size > 3 * old_size) return at;
    void* moved = give(size);
    if (moved == nullptr) return size <= old_size ? at : nullptr;
    std::memcpy(moved, at, std::min(size, old_size));
    take(at);
    return moved;
  }

 private:
  static constexpr std::size_t kLargest = 512;

  [[nodiscard]] Allocator raw() const { return table_.get(Domain::kRaw); }

  Allocator below_;
  const AllocatorTable& table_;
  std::map<void*, std::size_t> small_;
};

// A runtime as Python is one. Lives as long as the process, which is what hooks are promised of the table.
struct Runtime {
  Below below;
  Objects objects{below, table};
  testing::Table table{testing::allocator_of(objects), below.allocator()};
};

Runtime runtime;
testing::Accountant accountant;

// The program: does what bytes say, in steps, and checks every block, and the books. What it leaves behind is nothing.
class Program {
 public:
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    while (!blocks_.is_empty()) release(0);
    end_others();
    stop();
    require(runtime.below.living() == 0, "all blocks of the allocator below have been freed");
    require(living_samples() == 0 || runtime.table.had_others(), "no sample is alive when no block is");
    runtime.below.recover();
    runtime.table.forget_hooks();
    forget_hooks();
  }

  // One step: three bytes say which.
  void step(std::uint8_t what, std::uint8_t which, std::uint8_t how_much) {
    const auto domain = static_cast<Domain>(which % kAllDomains);
    const std::size_t size = testing::size_of_kind(which / 8U % 4U, how_much);
    const std::uint32_t stack = kOthers + 1 + which / 32U;
    wants_gil_ = what % 5 != 0;
    if (what < 90) return allocate(domain, size, stack, what % 3 == 0);
    if (what < 150) return blocks_.is_empty() ? void() : release(which * 256U + how_much);
    if (what < 200) return blocks_.is_empty() ? void() : change(which, size, stack);
    control(what % 16, how_much);
  }

 private:
  enum class Recording { kNone, kSampled, kExact };

  // Calls an allocator as the program does: the books know who it was.
  template <typename Call>
  auto as_program(Domain domain, std::uint32_t stack, Call call) {
    accountant.stack_now = stack;
    // Others than the raw allocator are called with the GIL only.
    accountant.is_with_gil = wants_gil_ || domain != Domain::kRaw;
    auto result = call(runtime.table.get(domain));
    accountant.stack_now = kOthers;
    accountant.is_with_gil = true;
    return result;
  }

  // ---- what is booked ----

  [[nodiscard]] bool is_booked_now() const { return recording_ == Recording::kExact && pauses_ == 0; }
  void begin(Held& held, std::uint32_t stack, std::size_t size) {
    held.stack = is_booked_now() ? stack : 0;
    held.booked_size = size;
    if (held.stack != 0) expected_[{held.stack, held.domain}].born.add(1, static_cast<std::int64_t>(size));
  }
  void end(const Held& held) {
    if (held.stack == 0) return;
    expected_[{held.stack, held.domain}].ended.add(1, static_cast<std::int64_t>(held.booked_size));
  }
  // Raw blocks are booked, too, but have no types to be told.
  static bool is_told(const Held& held) { return held.stack != 0 && held.domain != Domain::kRaw; }

  // ---- calls ----

  void allocate(Domain domain, std::size_t size, std::uint32_t stack, bool zeroed) {
    void* at =
        as_program(domain, stack, [&](const Allocator& from) { return testing::allocate_from(from, size, zeroed); });
    if (at != nullptr) hold({domain, static_cast<unsigned char*>(at), size}, stack);
  }
  void hold(Held held, std::uint32_t stack) {
    begin(held, stack, held.size);
    blocks_.hold(held);
  }
  Held take(std::size_t number) {
    const Held held = blocks_.take(number);
    const std::uint32_t told = is_told(held) ? held.stack : 0;
    require(is_cut_ || stack_at(held.at) == told, "the stack that allocated a block is known as long as it is alive");
    return held;
  }
  void release(std::size_t number) {
    const Held held = take(number);
    as_program(held.domain, kOthers, [&](const Allocator& from) {
      from.free(from.context, held.at);
      return 0;
    });
    end(held);
  }
  void change(std::size_t number, std::size_t size, std::uint32_t stack) {
    Held held = take(number);
    void* moved = as_program(held.domain, stack,
                             [&](const Allocator& from) { return from.realloc(from.context, held.at, size); });
    if (moved == nullptr) return blocks_.put_back(held);  // there is no memory: it stays, and is booked, as it was
    end(held);
    held.at = static_cast<unsigned char*>(moved);
    held.check(std::min(held.size, size));
    held.size = size;
    hold(held, stack);
  }

  // ---- recordings and others' hooks ----

  void control(std::uint8_t what, std::uint8_t how_much) {
    switch (what) {
      case 0:
      case 1:
      case 2: return sample(std::uint64_t{64} << how_much % 12, interpreters_of(how_much));
      case 3:
      case 4:
      case 5: return book(how_much % 3 == 0 ? ExactDetail::kEvents : ExactDetail::kSums, interpreters_of(how_much));
      case 6: return stop();
      case 7: return abandon();
      case 8: return pause();
      case 9: return resume();
      case 10:
      case 11: return runtime.table.begin_others();
      case 12: return end_others();
      case 13: return runtime.below.fail_once();
      case 14: return how_much % 2 == 0 ? close_exact_epoch() : (void)ask_for_exact_epoch();
      default: return how_much % 8 == 0 ? lock() : witness_.lose_next();
    }
  }
  static Interpreters interpreters_of(std::uint8_t how_much) {
    return how_much % 16 == 0 ? Interpreters::kAtOnce : Interpreters::kInTurns;
  }

  // Whatever begins or ends finds out with allocations whether hooks are called, and without memory for that believes
  // they are.
  void prepare() {
    runtime.below.recover();
    pauses_ = 0;
    are_others_below_ = runtime.table.has_others();
    is_cut_ = false;
  }
  void sample(std::uint64_t distance, Interpreters interpreters) {
    stop();
    prepare();
    const bool has_begun = start_sampling(witness_, runtime.table, distance, interpreters).ok();
    require(has_begun || runtime.table.had_others(), "only others can hinder sampling");
    if (has_begun) recording_ = Recording::kSampled;
  }
  void book(ExactDetail detail, Interpreters interpreters) {
    stop();
    prepare();
    accountant.begin(detail);
    const Status begun = start_exact(accountant, runtime.table, interpreters, ExactScope::kPython, detail);
    require(begun.ok(), "nobody can hinder the books");
    recording_ = Recording::kExact;
  }

  void stop() {
    runtime.below.recover();
    if (recording_ == Recording::kSampled)
      require(stop_sampling() == Stopped::kWhole || is_cut_, "only others can take out the hooks");
    if (recording_ == Recording::kExact) {
      require(stop_exact() == Stopped::kWhole || is_cut_, "only others can take out the hooks");
      if (!is_cut_) check_books();
    }
    forget();
  }
  void check_books() {
    testing::LivingBlocks living;
    for (const Held& held : blocks_.all())
      if (is_told(held)) living[held.at] = {{held.stack, held.domain}, held.booked_size};
    accountant.check(expected_, living);
  }
  void abandon() {
    if (recording_ == Recording::kSampled) abandon_sampling();
    if (recording_ == Recording::kExact) abandon_exact();
    forget();
  }
  void forget() {
    recording_ = Recording::kNone;
    pauses_ = 0;
    is_cut_ = false;
    witness_.forget();
    accountant.forget();
    expected_.clear();
    for (Held& held : blocks_.all()) held.stack = 0;
  }
  void pause() {
    if (recording_ == Recording::kNone) return;
    ++pauses_;
    recording_ == Recording::kExact ? pause_exact() : pause_sampling();
  }
  void resume() {
    if (recording_ == Recording::kNone || pauses_ == 0) return;
    --pauses_;
    recording_ == Recording::kExact ? resume_exact() : resume_sampling();
  }
  // Those that were there before a recording put back what was there before them, which is not its hooks.
  void end_others() {
    if (runtime.table.has_others() && are_others_below_ && recording_ != Recording::kNone) is_cut_ = true;
    runtime.table.end_others();
    are_others_below_ = false;
  }
  static void lock() {
    require(lock_exact().ok() || runtime.table.had_others(), "only others can hinder that interpreters are added");
  }

  testing::Witness witness_;
  testing::HeldBlocks blocks_;
  testing::Accounts expected_;
  Recording recording_ = Recording::kNone;
  int pauses_ = 0;
  bool wants_gil_ = true;          // the step at hand: if not, and the allocator may be called without, it is
  bool are_others_below_ = false;  // their hooks were there when the recording began
  bool is_cut_ = false;            // they have ended since: what the recording tells is not checked
};

}  // namespace
}  // namespace plimsoll::alloc

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  plimsoll::alloc::Program program;
  for (std::size_t i = 0; i + 2 < size && i < 30'000; i += 3) program.step(data[i], data[i + 1], data[i + 2]);
  return 0;
}
