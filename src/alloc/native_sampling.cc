#include "alloc/native_sampling.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "alloc/patched_malloc.h"
#include "base/inside.h"
#include "base/poisson.h"
#include "base/static_storage.h"
#include "os/os.h"

namespace plimsoll::alloc {
namespace {

// Bytes until a thread looks again whether and how it is to sample, at the latest.
constexpr std::int64_t kLookAgain = std::int64_t{1} << 16U;
// From one recording's ground to the next one's: more than any countdown's height above it.
constexpr std::int64_t kGroundStep = 4 * kLookAgain;
// Where a recording's countdowns end: what an earlier one has left of a thread's is at its end, too.
constexpr std::int64_t ground_of(std::uint32_t session) { return session * kGroundStep; }
// A chance of one, for all that a double can tell.
constexpr std::uint64_t kCertain = 64;

// Everything the hooks share. Never destroyed: copies of pointers to them may be called to the end of the process.
struct Native {
  struct Hooked {
    Allocator below{};
    bool is_in_place = false;  // our hooks are in the table, or under others'
  };
  std::array<Hooked, kAllDomains> hooked{};
  AllocatorTable* table = nullptr;
  bool is_active = false;   // between start and stop
  bool is_patched = false;  // malloc is
  NativeScope scope;
  std::atomic<SampleTaker*> taker{nullptr};  // null: nothing is sampled
  std::atomic<int> callers{0};               // threads that turn to it
  std::atomic<int> pauses{0};
  std::atomic<std::uint64_t> mean_bytes{1};
  std::atomic<std::uint32_t> session{0};
  std::atomic<std::int64_t> ground{0};  // the last one's; changed when all else is
  std::mutex mutex;                     // guards the blocks, but for their filter; no other lock is taken with it held
  SampledBlocks blocks{0};
};

constinit StaticStorage<Native> native_storage;
Native* const native = &native_storage.value;
bool native_is_made = false;

// What a thread has left to allocate before its next sample point.
struct NativeCountdown {
  std::int64_t left = 0;      // at Native::ground the slow path is due: for the point, or to look again
  std::int64_t beyond = 0;    // bytes from the ground to the point
  std::int64_t was_left = 0;  // when the slow path was there last
  std::uint64_t random = 0;
  std::uint32_t session = 0;  // the recording that this is for
};
// Of the C library's and the raw allocator, and of those of objects, whose bytes are counted.
[[gnu::tls_model("initial-exec")]] thread_local constinit NativeCountdown native_countdown;
[[gnu::tls_model("initial-exec")]] thread_local constinit NativeCountdown object_countdown;
// The thread has the lock, as fork must not happen while another has it.
[[gnu::tls_model("initial-exec")]] thread_local constinit bool is_forking = false;

constexpr bool is_counted(Domain domain) { return domain == Domain::kObject || domain == Domain::kMemory; }
NativeCountdown& countdown_of(Domain domain) { return is_counted(domain) ? object_countdown : native_countdown; }

// The blocks, held.
class Blocks {
 public:
  Blocks() : is_ours_(!is_forking) {
    if (is_ours_) native->mutex.lock();
  }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;
  ~Blocks() {
    if (is_ours_) native->mutex.unlock();
  }
  SampledBlocks* operator->() const { return &native->blocks; }

 private:
  const bool is_ours_;
};

// The taker, who stays as long as this lives; and what is allocated meanwhile is ours.
class Taker {
 public:
  Taker() : was_inside_(std::exchange(is_inside, true)) {
    native->callers.fetch_add(1);
    taker_ = native->taker.load();
  }
  Taker(const Taker&) = delete;
  Taker& operator=(const Taker&) = delete;
  ~Taker() {
    native->callers.fetch_sub(1);
    is_inside = was_inside_;
  }
  [[nodiscard]] SampleTaker* get() const { return taker_; }

 private:
  SampleTaker* taker_ = nullptr;
  const bool was_inside_;
};

// What a block is at which a countdown has come to its end.
struct Due {
  std::uint64_t chance_bytes = 0;  // what its chance to be a sample came from; 0 if it is none
  std::uint64_t given_bytes = 0;   // that the thread was given since the last such block
};

// The countdown is at its end with a block of `size` bytes. A point in a block that is not to be sampled is passed
// over, which makes no difference to the others: how far it is from any place to the next point does not depend on
// where the last one was.
Due look_at(NativeCountdown& count, std::size_t size) {
  const std::int64_t last_ground = native->ground.load(std::memory_order_acquire);  // first: nothing else is older
  const std::uint64_t mean = native->mean_bytes.load(std::memory_order_relaxed);
  const std::uint32_t session = native->session.load(std::memory_order_relaxed);
  const std::int64_t ground = ground_of(session);
  const bool samples = native->taker.load(std::memory_order_relaxed) != nullptr;
  if (!samples) {
    count.left = last_ground + kLookAgain;
    count.beyond = 0;
    count.session = 0;
    return {};
  }
  const bool is_wanted = !is_inside && native->pauses.load(std::memory_order_relaxed) == 0;
  const std::int64_t step = std::min(kLookAgain, static_cast<std::int64_t>(mean));
  const auto move_on = [&] {
    const std::int64_t bytes = std::min(count.beyond, step);
    count.beyond -= bytes;
    count.left += bytes;
  };
  if (count.random == 0) count.random = os::random_seed() | 1U;
  Due due;
  due.given_bytes = static_cast<std::uint64_t>(count.was_left - count.left);
  if (count.session != session) {
    due.given_bytes = size;
    count.session = session;
    count.beyond = distance_to_sample(count.random, mean);
    count.left = ground - static_cast<std::int64_t>(size);
  }
  // Those are not left to chance, and take no part in the count. As no step is longer, none of them is missed.
  const bool is_large = size >= mean;
  if (is_large) count.left += static_cast<std::int64_t>(size);
  while (count.left <= ground && count.beyond > 0) move_on();
  const bool is_reached = count.left <= ground;
  if (is_reached) {
    count.left = ground;
    count.beyond = distance_to_sample(count.random, mean);
    move_on();
  }
  count.was_left = count.left;
  if (!is_wanted) return {};
  if (is_large)
    due.chance_bytes = std::max(mean * kCertain, static_cast<std::uint64_t>(size));
  else if (is_reached)
    due.chance_bytes = std::max<std::uint64_t>(size, 1);
  return due;
}

struct SampledBooks {
  using Kept = std::optional<SampledBlock>;

  // (Nobody is given more than PTRDIFF_MAX; whoever asks for it must not turn the count round.)
  static constexpr std::size_t kMost = PTRDIFF_MAX;
  static bool is_due(NativeCountdown& count, std::size_t size) {
    count.left -= static_cast<std::int64_t>(size & kMost);
    return count.left <= native->ground.load(std::memory_order_relaxed);
  }
  // Takes back what is_due() has counted, when that brought the countdown to its end. (What does not is little, and is
  // counted whether it was given or not.)
  static void not_given(NativeCountdown& count, std::size_t size) {
    count.left += static_cast<std::int64_t>(size & kMost);
  }
  static void not_given(std::size_t size) { not_given(native_countdown, size); }
  static bool is_due(std::size_t size) { return is_due(native_countdown, size); }
  static bool may_know(const void* at) { return native->blocks.may_be_large(at); }
  static void note(Domain domain, void* at, std::size_t size) {
    const Due due = look_at(countdown_of(domain), size);
    if (due.chance_bytes == 0 && !(is_counted(domain) && due.given_bytes != 0)) return;
    const Taker taker;
    if (taker.get() == nullptr) return;
    if (is_counted(domain)) taker.get()->count_bytes(due.given_bytes);
    if (due.chance_bytes == 0) return;
    const SampledBlock block{taker.get()->next_number(), size, native->session.load(),
                             static_cast<std::uint32_t>(domain)};
    if (!taker.get()->allocated(block, due.chance_bytes)) return;
    Kept stale, untold;
    {
      const Blocks blocks;
      stale = blocks->find(at);
      if (!blocks->track(at, block)) untold = block;
    }
    // Somebody who was not met has freed it.
    if (stale) taker.get()->ended(nullptr, *stale, End::kFreed);
    // One that cannot be followed: nobody is to think that it was never freed.
    if (untold) taker.get()->ended(nullptr, *untold, End::kFreed);
  }
  static Kept take(const void* at, NativeEnd) {
    if (is_inside) return {};  // what is allocated there is not sampled; and the lock may be this thread's
    const bool before = std::exchange(is_inside, true);
    Kept kept;
    {
      const Blocks blocks;
      kept = blocks->find(at);
      if (kept) blocks->forget(at);
    }
    is_inside = before;
    return kept;
  }
  static void put_back(const void* at, const Kept& kept) {
    const bool before = std::exchange(is_inside, true);
    bool is_known = true;
    if (const Blocks blocks; kept) is_known = blocks->track(at, *kept);  // mostly in the place that take() has left
    is_inside = before;
    if (!is_known) ended(kept);
  }
  // What was in the block is at `at`, or nowhere any more.
  static void ended(const Kept& kept, const void* at = nullptr, End end = End::kFreed) {
    if (!kept || kept->session != native->session.load(std::memory_order_relaxed)) return;
    const Taker taker;
    if (taker.get() != nullptr) taker.get()->ended(at, *kept, end);
  }
};

// ---- Python's allocators ----

template <Domain domain>
struct Hooks {
  // The allocator below, called. Where these are left from a recording that is over, hooks that book every block may
  // lie below, and this is for them to account for.
  template <typename Call>
  static auto call_below(Call call) {
    return native->taker.load(std::memory_order_relaxed) != nullptr ? inside(call) : call();
  }

  static Native::Hooked& hooked() { return native->hooked[static_cast<std::size_t>(domain)]; }
  static bool is_due(std::size_t size) { return SampledBooks::is_due(countdown_of(domain), size); }

  static void* malloc(void* context, std::size_t size) {
    void* at = call_below([&] { return hooked().below.malloc(context, size); });
    return is_due(size) ? noted(at, size) : at;
  }
  static void* calloc(void* context, std::size_t count, std::size_t item) {
    void* at = call_below([&] { return hooked().below.calloc(context, count, item); });
    return at != nullptr && is_due(count * item) ? noted(at, count * item) : at;
  }
  static void free(void* context, void* at) {
    if (SampledBooks::may_know(at)) [[unlikely]]
      SampledBooks::ended(SampledBooks::take(at, NativeEnd::kFreed), at);
    hooked().below.free(context, at);
  }
  static void* realloc(void* context, void* at, std::size_t size) {
    if (at == nullptr) return malloc(context, size);
    SampledBooks::Kept kept;
    if (SampledBooks::may_know(at)) [[unlikely]]
      kept = SampledBooks::take(at, NativeEnd::kMoved);
    void* moved = call_below([&] { return hooked().below.realloc(context, at, size); });
    if (moved == nullptr) {
      if (kept) SampledBooks::put_back(at, kept);
      return nullptr;
    }
    if (kept) {
      kept->size = std::min<std::uint64_t>(kept->size, size);
      SampledBooks::ended(kept, moved, End::kMoved);
    }
    return is_due(size) ? noted(moved, size) : moved;
  }

  static bool is_current() { return native->table->get(domain).free == &free; }
  // Others' hooks may lie over ours, and call them; or lay below, and have put back what was there before them, and us.
  static bool is_called() {
    if (!hooked().is_in_place || is_current()) return hooked().is_in_place;
    constexpr std::int64_t kFar = std::int64_t{1} << 62U;
    return is_reached(*native->table, domain, countdown_of(domain), {.left = kFar}, 64);
  }
  static void install() {
    if (is_called()) return;
    hooked().is_in_place = true;
    hooked().below = native->table->get(domain);
    native->table->set(domain, {hooked().below.context, malloc, calloc, realloc, free});
  }
  static void remove() {
    if (!hooked().is_in_place || !is_current()) return;
    native->table->set(domain, hooked().below);
    hooked().is_in_place = false;
  }

 private:
  [[gnu::noinline]] static void* noted(void* at, std::size_t size) {
    const int error = errno;
    if (at != nullptr)
      SampledBooks::note(domain, at, size);
    else
      SampledBooks::not_given(countdown_of(domain), size);
    errno = error;
    return at;
  }
};

void make_native() {
  new (&native_storage.value) Native;
  native_is_made = true;
  const auto let_go = [] {
    native->mutex.unlock();
    is_forking = false;
  };
  ::pthread_atfork(
      [] {
        native->mutex.lock();
        is_forking = true;
      },
      let_go,
      [] {
        native->mutex.unlock();
        is_forking = false;
        // Threads that were busy with these do not exist here.
        native->taker.store(nullptr);
        native->callers.store(0);
      });
}

bool are_all_called(NativeScope scope) {
  const bool is_raw_called = Hooks<Domain::kRaw>::is_called();
  if (!scope.has_all_domains) return is_raw_called;
  return Hooks<Domain::kMemory>::is_called() && Hooks<Domain::kObject>::is_called() && is_raw_called;
}

void take_hooks_out() {
  if (std::exchange(native->is_patched, false)) restore_malloc();
  Hooks<Domain::kRaw>::remove();
  Hooks<Domain::kMemory>::remove();
  Hooks<Domain::kObject>::remove();
}

}  // namespace

Status start_native_sampling(SampleTaker& taker, AllocatorTable& table, std::uint64_t mean_bytes, NativeScope scope) {
  if (!native_is_made) make_native();
  native->table = &table;
  native->mean_bytes.store(std::max<std::uint64_t>(mean_bytes, 1));
  native->pauses.store(0);
  native->session.fetch_add(1);
  native->taker.store(&taker);
  native->ground.store(ground_of(native->session.load()));  // every thread begins with its next block
  native->is_active = true;
  native->scope = scope;
  Hooks<Domain::kRaw>::install();
  if (scope.has_all_domains) {
    Hooks<Domain::kMemory>::install();
    Hooks<Domain::kObject>::install();
  }
  if (!scope.has_malloc) return Ok{};
  Status patched = patch_malloc<SampledBooks>();
  native->is_patched = patched.ok();
  if (!patched.ok()) abandon_native_sampling();
  return patched;
}

Stopped stop_native_sampling() {
  if (!native_is_made || !std::exchange(native->is_active, false)) return Stopped::kWhole;
  SampleTaker* const taker = native->taker.exchange(nullptr);
  while (native->callers.load() != 0) ::sched_yield();
  const bool is_whole = are_all_called(native->scope);
  const bool before = std::exchange(is_inside, true);
  {
    // While this is held, and the hooks are there, none of the blocks is freed.
    const Blocks blocks;
    if (!is_whole) blocks->forget_large();  // their memory may be gone
    blocks->for_each([taker](const void* at, const SampledBlock& block) {
      if (taker != nullptr && block.session == native->session.load()) taker->ended(at, block, End::kOfTime);
    });
    blocks->forget_large();
  }
  is_inside = before;
  take_hooks_out();
  return is_whole ? Stopped::kWhole : Stopped::kCutShort;
}

void abandon_native_sampling() {
  if (native_is_made) native->taker.store(nullptr);
  (void)stop_native_sampling();
}

std::optional<std::uint64_t> native_sample_at(const void* block) {
  if (!native_is_made || !native->is_active || !native->blocks.may_be_large(block)) return std::nullopt;
  const bool before = std::exchange(is_inside, true);
  std::optional<SampledBlock> found;
  {
    const Blocks blocks;
    found = blocks->find(block);
  }
  is_inside = before;
  return found && found->session == native->session.load() ? std::optional(found->number) : std::nullopt;
}

void pause_native_sampling() {
  if (native_is_made) native->pauses.fetch_add(1);
}

void resume_native_sampling() {
  if (native_is_made && native->pauses.load() > 0) native->pauses.fetch_sub(1);
}

std::size_t living_native_samples() {
  if (!native_is_made) return 0;
  const Blocks blocks;
  return blocks->living();
}

}  // namespace plimsoll::alloc
