#include "alloc/native_sampling.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "alloc/patched_malloc.h"
#include "base/inside.h"
#include "base/poisson.h"
#include "os/os.h"

namespace plimsoll::alloc {
namespace {

// Bytes until a thread looks again whether and how it is to sample, at the latest.
constexpr std::int64_t kLookAgain = std::int64_t{1} << 16U;
// A chance of one, for all that a double can tell.
constexpr std::uint64_t kCertain = 64;

// Everything the hooks share. Never destroyed: copies of pointers to them may be called to the end of the process.
struct Native {
  Allocator raw{};
  AllocatorTable* table = nullptr;
  bool has_raw = false;                      // our hooks are in the table, or under others'
  bool is_active = false;                    // between start and stop
  bool is_patched = false;                   // malloc is
  std::atomic<NativeTaker*> taker{nullptr};  // null: nothing is sampled
  std::atomic<int> callers{0};               // threads that turn to it
  std::atomic<int> pauses{0};
  std::atomic<std::uint64_t> mean_bytes{1};
  std::atomic<std::uint32_t> session{0};
  std::mutex mutex;  // guards the blocks, but for their filter; no other lock is taken with it held
  SampledBlocks blocks{0};
};

// As with sampling_hooks: in static memory, made at first use, never destroyed.
union NativeStorage {
  constexpr NativeStorage() : nothing(0) {}
  ~NativeStorage() {}
  char nothing;
  Native native;
};
constinit NativeStorage native_storage;
Native* const native = &native_storage.native;
bool native_is_made = false;

// What a thread has left to allocate before its next sample point.
struct NativeCountdown {
  std::int64_t left = 0;    // bytes until the slow path is due: for the point, or to look again
  std::int64_t beyond = 0;  // bytes from there to the point
  std::uint64_t random = 0;
  std::uint32_t session = 0;  // the recording that this is for
  bool is_forking = false;    // the thread has the lock, as fork must not happen while another has it
};
[[gnu::tls_model("initial-exec")]] thread_local constinit NativeCountdown native_countdown;

// The blocks, held.
class Blocks {
 public:
  Blocks() : is_ours_(!native_countdown.is_forking) {
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
  [[nodiscard]] NativeTaker* get() const { return taker_; }

 private:
  NativeTaker* taker_ = nullptr;
  const bool was_inside_;
};

// The calling thread's countdown is at its end with a block of `size` bytes. What its chance to be a sample came from,
// in bytes; 0 if it is none. A point in a block that is not to be sampled is passed over, which makes no difference to
// the others: how far it is from any place to the next point does not depend on where the last one was.
std::uint64_t chance_of(std::size_t size) {
  NativeCountdown& count = native_countdown;
  const std::uint64_t mean = native->mean_bytes.load(std::memory_order_relaxed);
  const std::uint32_t session = native->session.load(std::memory_order_relaxed);
  const bool samples = native->taker.load(std::memory_order_relaxed) != nullptr;
  if (!samples) {
    count.left = kLookAgain;
    count.beyond = 0;
    count.session = 0;
    return 0;
  }
  const bool is_wanted = !is_inside && native->pauses.load(std::memory_order_relaxed) == 0;
  const std::int64_t step = std::min(kLookAgain, static_cast<std::int64_t>(mean));
  const auto move_on = [&] {
    const std::int64_t bytes = std::min(count.beyond, step);
    count.beyond -= bytes;
    count.left += bytes;
  };
  if (count.random == 0) count.random = os::random_seed() | 1U;
  if (count.session != session) {
    count.session = session;
    count.beyond = distance_to_sample(count.random, mean);
    count.left = -static_cast<std::int64_t>(size);
  }
  // Those are not left to chance, and take no part in the count. As no step is longer, none of them is missed.
  const bool is_large = size >= mean;
  if (is_large) count.left += static_cast<std::int64_t>(size);
  while (count.left <= 0 && count.beyond > 0) move_on();
  const bool is_reached = count.left <= 0;
  if (is_reached) {
    count.left = 0;
    count.beyond = distance_to_sample(count.random, mean);
    move_on();
  }
  if (!is_wanted) return 0;
  if (is_large) return std::max(mean * kCertain, static_cast<std::uint64_t>(size));
  return is_reached ? std::max<std::uint64_t>(size, 1) : 0;
}

struct SampledBooks {
  using Kept = std::optional<SampledBlock>;

  static bool is_due(std::size_t size) {
    native_countdown.left -= static_cast<std::int64_t>(size);
    return native_countdown.left <= 0;
  }
  static bool may_know(const void* at) { return native->blocks.may_be_large(at); }
  static void note(Domain domain, void* at, std::size_t size) {
    const std::uint64_t chance_bytes = chance_of(size);
    if (chance_bytes == 0) return;
    const Taker taker;
    if (taker.get() == nullptr) return;
    const SampledBlock block{taker.get()->next_number(), size, native->session.load(),
                             static_cast<std::uint32_t>(domain)};
    if (!taker.get()->allocated(block, chance_bytes)) return;
    Kept stale;
    {
      const Blocks blocks;
      stale = blocks->find(at);
      blocks->track(at, block);
    }
    // Somebody who was not met has freed it.
    if (stale) taker.get()->ended(*stale);
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
    if (const Blocks blocks; kept) blocks->track(at, *kept);
    is_inside = before;
  }
  static void ended(const Kept& kept) {
    if (!kept || kept->session != native->session.load(std::memory_order_relaxed)) return;
    const Taker taker;
    if (taker.get() != nullptr) taker.get()->ended(*kept);
  }
};

// ---- Python's raw allocator ----

void* raw_noted(void* at, std::size_t size) {
  const int error = errno;
  if (at != nullptr) SampledBooks::note(Domain::kRaw, at, size);
  errno = error;
  return at;
}

void* raw_malloc(void* context, std::size_t size) {
  void* at = inside([&] { return native->raw.malloc(context, size); });
  return SampledBooks::is_due(size) ? raw_noted(at, size) : at;
}

void* raw_calloc(void* context, std::size_t count, std::size_t item) {
  void* at = inside([&] { return native->raw.calloc(context, count, item); });
  return at != nullptr && SampledBooks::is_due(count * item) ? raw_noted(at, count * item) : at;
}

void raw_free(void* context, void* at) {
  if (SampledBooks::may_know(at)) [[unlikely]]
    SampledBooks::ended(SampledBooks::take(at, NativeEnd::kFreed));
  native->raw.free(context, at);
}

void* raw_realloc(void* context, void* at, std::size_t size) {
  if (at == nullptr) return raw_malloc(context, size);
  SampledBooks::Kept kept;
  if (SampledBooks::may_know(at)) [[unlikely]]
    kept = SampledBooks::take(at, NativeEnd::kMoved);
  void* moved = inside([&] { return native->raw.realloc(context, at, size); });
  if (moved == nullptr) {
    if (kept) SampledBooks::put_back(at, kept);
    return nullptr;
  }
  if (kept) SampledBooks::ended(kept);
  return SampledBooks::is_due(size) ? raw_noted(moved, size) : moved;
}

bool is_current() { return native->table->get(Domain::kRaw).free == &raw_free; }

void install_raw() {
  // Those that others' hooks lie over are called by them.
  if (native->has_raw) return;
  native->raw = native->table->get(Domain::kRaw);
  native->table->set(Domain::kRaw, {native->raw.context, raw_malloc, raw_calloc, raw_realloc, raw_free});
  native->has_raw = true;
}

void remove_raw() {
  if (!native->has_raw || !is_current()) return;
  native->table->set(Domain::kRaw, native->raw);
  native->has_raw = false;
}

void make_native() {
  new (&native_storage.native) Native;
  native_is_made = true;
  const auto let_go = [] {
    native->mutex.unlock();
    native_countdown.is_forking = false;
  };
  ::pthread_atfork(
      [] {
        native->mutex.lock();
        native_countdown.is_forking = true;
      },
      let_go,
      [] {
        native->mutex.unlock();
        native_countdown.is_forking = false;
        // Threads that were busy with these do not exist here.
        native->taker.store(nullptr);
        native->callers.store(0);
      });
}

void take_hooks_out() {
  if (std::exchange(native->is_patched, false)) restore_malloc();
  remove_raw();
}

}  // namespace

Status start_native_sampling(NativeTaker& taker, AllocatorTable& table, std::uint64_t mean_bytes, NativeScope scope) {
  if (!native_is_made) make_native();
  native->table = &table;
  native->mean_bytes.store(std::max<std::uint64_t>(mean_bytes, 1));
  native->pauses.store(0);
  native->session.fetch_add(1);
  native->taker.store(&taker);
  native->is_active = true;
  native_countdown.left = native_countdown.beyond = 0;
  native_countdown.session = 0;
  install_raw();
  if (scope == NativeScope::kRaw) return Ok{};
  const Status patched = patch_malloc<SampledBooks>();
  native->is_patched = patched.ok();
  if (!patched.ok()) stop_native_sampling();
  return patched;
}

void stop_native_sampling() {
  if (!native_is_made || !std::exchange(native->is_active, false)) return;
  native->taker.store(nullptr);
  take_hooks_out();
  while (native->callers.load() != 0) ::sched_yield();
  const bool before = std::exchange(is_inside, true);
  {
    const Blocks blocks;
    blocks->forget_large();
  }
  is_inside = before;
}

void abandon_native_sampling() { stop_native_sampling(); }

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
