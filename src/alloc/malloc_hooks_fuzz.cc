// alloc/malloc_hooks_fuzz.cc: any sequence of calls of malloc and its kin, and of Python's allocators, with recordings
// of both kinds that begin, pause and end, leaves the program with its blocks as they were, and the books right.
//
// The functions are called that stand in the place of malloc while it is recorded. What other modules allocate
// meanwhile is booked, too, but under a stack of its own, which nobody looks at.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "alloc/exact_hooks.h"
#include "alloc/exact_testing.h"
#include "alloc/native_sampling.h"
#include "alloc/patched_malloc.h"
#include "alloc/sampling_hooks.h"
#include "alloc/testing.h"

namespace plimsoll::alloc {
namespace {

using testing::Accounts;
using testing::kOthers;
using testing::require;
using testing::Site;

// Knows which samples are alive.
class Witness final : public SampleTaker {
 public:
  std::uint64_t next_number() override { return ++last_; }
  bool allocated(const SampledBlock& block, std::uint64_t chance_bytes) override {
    require(chance_bytes >= block.size && chance_bytes >= 1, "a chance comes from no less than the size");
    if (std::exchange(loses_next, false)) return false;
    require(alive_.emplace(block.number, block.size).second, "numbers come once");
    if (is_in_call) fresh = block.number;
    return true;
  }
  void ended(const void*, const SampledBlock& block, End end) override {
    const auto found = alive_.find(block.number);
    require(found != alive_.end(), "only samples end, once");
    require(end == End::kMoved ? found->second >= block.size : found->second == block.size, "and as they were");
    alive_.erase(found);
  }
  void count_bytes(std::uint64_t) override {}
  [[nodiscard]] bool is_alive(std::uint64_t number) const { return alive_.contains(number); }
  void forget() { alive_.clear(); }

  bool is_in_call = false, loses_next = false;
  std::uint64_t fresh = 0;  // what the call at hand was a sample of

 private:
  std::map<std::uint64_t, std::uint64_t> alive_;
  std::uint64_t last_ = 0;
};

// The C library's function, or ours in its place.
template <typename Function>
Function* now(const char* name, Function* original) {
  void* ours = replacement_of(name);
  return ours != nullptr ? reinterpret_cast<Function*>(ours) : original;
}

testing::Accountant accountant;
Witness witness;
testing::CLibraryTable table;

class Program {
 public:
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    while (!blocks_.empty()) release(0);
    stop();
    // The next program begins anew, with a heap that no interpreters have had locked.
    table = testing::CLibraryTable();
    forget_hooks();
  }

  void step(std::uint8_t what, std::uint8_t which, std::uint8_t how_much) {
    const std::size_t size = which % 2 == 0 ? how_much : std::size_t{how_much} * 61;
    if (what < 100) return allocate(what, which, size);
    if (what < 160) return blocks_.empty() ? void() : release(which * 256U + how_much);
    if (what < 210) return blocks_.empty() ? void() : change(which, what % 8 == 0 ? 0 : size);
    control(what % 12, how_much);
  }

 private:
  enum class Recording { kNone, kSampled, kExact };
  struct Held {
    std::optional<Domain> python;  // none: malloc's
    unsigned char* at = nullptr;
    std::size_t size = 0;
    unsigned char pattern = 0;
    std::optional<Site> booked;  // where exact books have it
    std::uint64_t sample = 0;
  };

  // Calls something as the program does: errno stays, and the books know who it was.
  template <typename Call>
  auto as_program(std::uint32_t stack, Call call) {
    constexpr int kMark = 77;
    accountant.stack_now = stack;
    witness.is_in_call = true;
    witness.fresh = 0;
    errno = kMark;
    auto result = call();
    const bool is_kept = errno == kMark || errno == ENOMEM;
    witness.is_in_call = false;
    accountant.stack_now = kOthers;
    require(is_kept, "errno is as the C library left it");
    return result;
  }

  void allocate(std::uint8_t what, std::uint8_t which, std::size_t size) {
    const std::uint32_t stack = kOthers + 1 + which % 5U;
    if (what % 3 != 0 && what % 7 == 3) size = (size + 31) / 32 * 32;  // as aligned_alloc wants it
    Held held;
    held.size = size;
    bool is_zeroed = false;
    void* at = nullptr;
    if (what % 3 == 0) {
      held.python = static_cast<Domain>(which / 8 % kAllDomains);
      const Allocator from = table.get(*held.python);
      is_zeroed = what % 2 == 0;
      at = as_program(stack,
                      [&] { return is_zeroed ? from.calloc(from.context, size, 1) : from.malloc(from.context, size); });
    } else {
      at = as_program(stack, [&] { return from_malloc(what % 7, size, is_zeroed); });
    }
    if (at == nullptr) return;
    held.at = static_cast<unsigned char*>(at);
    for (std::size_t i = 0; is_zeroed && i < size; ++i) require(held.at[i] == 0, "calloc gives zeros");
    hold(held, stack);
  }

  static void* from_malloc(int how, std::size_t size, bool& is_zeroed) {
    void* at = nullptr;
    switch (how) {
      case 0: is_zeroed = true; return now("calloc", &std::calloc)(1, size);
      case 1: return now("realloc", &std::realloc)(nullptr, size);
      case 2: return now("posix_memalign", &::posix_memalign)(&at, 64, size) == 0 ? at : nullptr;
      case 3: return now("aligned_alloc", &::aligned_alloc)(32, size);
      case 4:
        require(now("malloc", &std::malloc)(std::size_t{1} << 62U) == nullptr, "that is too much");
        return nullptr;
      default: return now("malloc", &std::malloc)(size);
    }
  }

  // The block is the program's from now on.
  void hold(Held held, std::uint32_t stack) {
    held.pattern = static_cast<unsigned char>(++patterns_);
    std::memset(held.at, held.pattern, held.size);
    const Domain domain = held.python.value_or(Domain::kMalloc);
    held.booked.reset();
    held.sample = 0;
    if (recording_ == Recording::kExact && pauses_ == 0) {
      held.booked = Site{stack, domain};
      expected_[*held.booked].born.add(1, static_cast<std::int64_t>(held.size));
    }
    const bool is_sampled_domain = !held.python || *held.python == Domain::kRaw || has_all_domains_;
    if (recording_ == Recording::kSampled) {
      held.sample = witness.fresh;
      const bool is_certain = is_sampled_domain && pauses_ == 0 && held.size >= mean_ && !may_lose_;
      require(!is_certain || held.sample != 0, "large blocks are samples");
      require((pauses_ == 0 && is_sampled_domain) || held.sample == 0, "what is not sampled is no sample");
    }
    blocks_.push_back(held);
  }

  Held take(std::size_t number) {
    Held& at = blocks_[number % blocks_.size()];
    const Held held = std::exchange(at, blocks_.back());
    blocks_.pop_back();
    check(held, held.size);
    return held;
  }
  static void check(const Held& held, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) require(held.at[i] == held.pattern, "a block keeps what is in it");
  }
  void end(const Held& held) {
    if (held.booked) expected_[*held.booked].ended.add(1, static_cast<std::int64_t>(held.size));
    require(held.sample == 0 || !witness.is_alive(held.sample), "a sample ends with its block");
  }

  void release(std::size_t number) {
    const Held held = take(number);
    as_program(kOthers, [&] {
      if (held.python) {
        const Allocator from = table.get(*held.python);
        from.free(from.context, held.at);
      } else {
        now("free", &std::free)(held.at);
      }
      return 0;
    });
    end(held);
  }

  void change(std::size_t number, std::size_t size) {
    Held held = take(number);
    const std::uint32_t stack = kOthers + 1 + static_cast<std::uint32_t>(number % 5);
    void* moved = nullptr;
    if (held.python) {
      const Allocator from = table.get(*held.python);
      moved = as_program(stack, [&] { return from.realloc(from.context, held.at, size); });
    } else {
      moved = as_program(stack, [&] { return now("realloc", &std::realloc)(held.at, size); });
    }
    const std::uint64_t fresh = witness.fresh;
    end(held);
    if (moved == nullptr) return require(size == 0, "there is memory");
    held.at = static_cast<unsigned char*>(moved);
    check(held, std::min(held.size, size));
    held.size = size;
    witness.fresh = fresh;
    hold(held, stack);
  }

  void control(std::uint8_t what, std::uint8_t how_much) {
    switch (what) {
      case 0:
      case 1: return start(Recording::kExact, how_much);
      case 2:
      case 3: return start(Recording::kSampled, how_much);
      case 4: return stop();
      case 5: return abandon();
      case 6: return pause();
      case 7: return resume();
      case 8: return close_exact_epoch();
      case 9:
        return recording_ == Recording::kExact ? require(lock_exact().ok(), "nobody lies over the hooks") : void();
      case 10:
        // Blocks that others free, past our functions: their address may be given out again.
        if (!blocks_.empty() && !blocks_.back().python && recording_ == Recording::kSampled) {
          std::free(blocks_.back().at);
          blocks_.pop_back();
        }
        return;
      default: may_lose_ = true; witness.loses_next = recording_ == Recording::kSampled;
    }
  }

  void start(Recording which, std::uint8_t how_much) {
    stop();
    pauses_ = 0;
    may_lose_ = witness.loses_next = false;
    if (which == Recording::kSampled) {
      mean_ = std::uint64_t{16} << how_much % 12;
      has_all_domains_ = how_much >= 128;
      const NativeScope scope{.has_all_domains = has_all_domains_, .has_malloc = true};
      require(start_native_sampling(witness, table, mean_, scope).ok(), "malloc can be sampled");
    } else {
      const Interpreters interpreters = how_much % 2 == 0 ? Interpreters::kAtOnce : Interpreters::kInTurns;
      const ExactDetail detail = how_much % 4 < 2 ? ExactDetail::kSums : ExactDetail::kEvents;
      accountant.begin(detail);
      require(start_exact(accountant, table, interpreters, ExactScope::kNative, detail).ok(), "malloc can be booked");
    }
    recording_ = which;
  }

  void stop() {
    if (recording_ == Recording::kSampled) stop_native_sampling();
    if (recording_ == Recording::kExact) {
      require(stop_exact() == Stopped::kWhole, "nobody takes out the hooks");
      testing::LivingBlocks living;
      for (const Held& held : blocks_) {
        const bool is_told = held.booked && held.python != Domain::kRaw;  // raw blocks have no types to be told
        if (is_told) living[held.at] = {*held.booked, held.size};
      }
      accountant.check(expected_, living);
    }
    forget();
  }
  void abandon() {
    if (recording_ == Recording::kSampled) abandon_native_sampling();
    if (recording_ == Recording::kExact) abandon_exact();
    forget();
  }
  void forget() {
    recording_ = Recording::kNone;
    witness.forget();
    accountant.forget();
    expected_.clear();
    for (Held& held : blocks_) {
      held.booked.reset();
      held.sample = 0;
    }
  }
  void pause() {
    if (recording_ == Recording::kNone) return;
    ++pauses_;
    recording_ == Recording::kExact ? pause_exact() : pause_native_sampling();
  }
  void resume() {
    if (recording_ == Recording::kNone || pauses_ == 0) return;
    --pauses_;
    recording_ == Recording::kExact ? resume_exact() : resume_native_sampling();
  }

  Recording recording_ = Recording::kNone;
  std::uint64_t mean_ = 0;
  bool has_all_domains_ = false;
  int pauses_ = 0;
  bool may_lose_ = false;
  std::vector<Held> blocks_;
  unsigned patterns_ = 0;
  Accounts expected_;
};

}  // namespace
}  // namespace plimsoll::alloc

// Sizes that cannot be had are asked for.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  plimsoll::alloc::Program program;
  for (std::size_t i = 0; i + 2 < size && i < 30'000; i += 3) program.step(data[i], data[i + 1], data[i + 2]);
  return 0;
}
