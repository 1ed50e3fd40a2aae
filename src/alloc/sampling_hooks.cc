#include "alloc/sampling_hooks.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>

#include "alloc/object_heap.h"
#include "alloc/sampled_blocks.h"
#include "base/inside.h"
#include "base/poisson.h"
#include "os/os.h"

namespace plimsoll::alloc {
namespace {

constexpr std::size_t kMostSmallBlocks = std::size_t{1} << 22U;  // 2 GiB of addresses
constexpr std::size_t kHeapBytes = std::size_t{1} << 36U;        // of addresses
// Bytes until a thread looks again whether and how it is to sample, at the latest.
constexpr std::int64_t kLookAgain = std::int64_t{1} << 16U;

// How much of ours is in place.
enum class Extent { kNone, kFrees, kAll };

// Whose hooks they are. The later ones know all blocks that the earlier ones gave out.
enum class Tier {
  kCounting,    // every allocation goes on to the allocator below, counted on the way
  kHeap,        // small blocks come from a heap of ours, whose slow path is the sample point
  kLockedHeap,  // likewise, for interpreters that do not share one GIL
};

// Everything the hooks share. Never destroyed: frees come through here to the very end of the process.
struct Hooks {
  std::array<Allocator, 2> original{};  // by Domain; written before any hook can be called
  ObjectHeap heap{kHeapBytes, os::random_seed()};
  std::mutex heap_mutex;  // for Tier::kLockedHeap; before `mutex` where both are held
  Tier tier = Tier::kCounting;
  bool gives = false;  // whether the heap gives out blocks, and does not only take them back
  SampledBlocks blocks{kMostSmallBlocks};

  // Guards what follows, and the blocks: interpreters with GILs of their own share all this.
  std::mutex mutex;
  SampleTaker* taker = nullptr;  // null: nothing is sampled
  bool is_active = false;        // between start and stop
  AllocatorTable* table = nullptr;
  std::uint64_t mean_bytes = 0;
  std::uint32_t session = 0;
  int pauses = 0;
  bool uses_slots = false;  // whether small sampled blocks live in slots of ours
  std::array<Extent, 2> extent{};
};

// In static memory, but made at first use and never destroyed: the compiler knows the address, and nobody waits for it.
union HooksStorage {
  constexpr HooksStorage() : nothing(0) {}
  ~HooksStorage() {}  // NOLINT(modernize-use-equals-default): that would be deleted
  char nothing;
  Hooks hooks;
};
constinit HooksStorage hooks_storage;
Hooks* const hooks = &hooks_storage.hooks;
bool hooks_are_made = false;

// What a thread has left to allocate before it reaches its next sample point. Constant-initialised and in the
// executable's own TLS block (initial-exec), so that counting is one subtraction in memory.
struct Countdown {
  std::int64_t left = 0;      // bytes until the slow path is due: for the point, or to look again
  std::int64_t last = 0;      // what `left` was then
  std::int64_t beyond = 0;    // bytes from there to the point
  std::uint32_t session = 0;  // the recording that this is for
  std::uint64_t random = 0;
};
[[gnu::tls_model("initial-exec")]] thread_local constinit Countdown countdown;

std::int64_t draw_distance() {
  if (countdown.random == 0) countdown.random = os::random_seed() | 1U;
  return distance_to_sample(countdown.random, hooks->mean_bytes);
}

void move_on() {
  const std::int64_t step = std::min(countdown.beyond, kLookAgain);
  countdown.beyond -= step;
  countdown.left += step;
}

// The calling thread's countdown is at its end with a block of `size` bytes. Whether the thread's sample point is in
// it. With the lock held.
bool is_sample(std::size_t size) {
  const bool samples = hooks->taker != nullptr && hooks->pauses == 0;
  if (!samples) {
    countdown = {kLookAgain, kLookAgain, 0, 0, countdown.random};
    return false;
  }
  if (countdown.session != hooks->session) {  // it begins here: this block is the first that counts
    countdown = {0, 0, 0, hooks->session, countdown.random};
    countdown.beyond = draw_distance();
    countdown.left = -static_cast<std::int64_t>(size);
  }
  hooks->taker->count_bytes(static_cast<std::uint64_t>(countdown.last - countdown.left));
  while (countdown.left <= 0 && countdown.beyond > 0) move_on();
  const bool is_reached = countdown.left <= 0;
  if (is_reached) {
    countdown.left = 0;
    countdown.beyond = draw_distance();
    move_on();
  }
  countdown.last = countdown.left;
  return is_reached;
}

enum class Fill { kNothing, kZeros };

Allocator& original(Domain domain) { return hooks->original[static_cast<std::size_t>(domain)]; }

void* plain_allocate(Domain domain, std::size_t size, Fill fill) {
  Allocator& from = original(domain);
  return inside(
      [&] { return fill == Fill::kZeros ? from.calloc(from.context, 1, size) : from.malloc(from.context, size); });
}

SampledBlock next_sample(Domain domain, std::size_t size) {
  return {hooks->taker->next_number(), size, hooks->session, static_cast<std::uint32_t>(domain)};
}

// A sampled block has been allocated. False if that could not be noted. `chance_bytes` is what its chance of being
// sampled came from.
bool record(const SampledBlock& block, std::uint64_t chance_bytes) {
  return hooks->taker->allocated(block, std::max<std::uint64_t>(chance_bytes, 1));
}

// A slot of ours for a sampled block, noted; nullptr if there is none for it, or it could not be noted.
void* sample_in_slot(const SampledBlock& block, std::uint64_t chance_bytes) {
  void* slot = hooks->uses_slots ? hooks->blocks.place(block) : nullptr;
  if (slot == nullptr || record(block, chance_bytes)) return slot;
  hooks->blocks.forget(slot);
  return nullptr;
}

// Tells what becomes of a sampled block. With the lock held.
void release(const void* at, const SampledBlock& block, End end) {
  if (hooks->taker != nullptr && block.session == hooks->session) hooks->taker->ended(at, block, end);
}

// A sampled block lives at `at`, outside our region.
void track(const void* at, const SampledBlock& block) {
  // Of one that cannot be followed nobody is to think that it was never freed.
  if (!hooks->blocks.track(at, block)) release(nullptr, block, End::kFreed);
}

// A block is a sample, and lives outside our region.
void sample_in_place(const void* at, const SampledBlock& block) {
  if (record(block, block.size)) track(at, block);
}

// The slow path of an allocation: the thread's sample point is in this block, or it has to draw one.
[[gnu::noinline]] void* allocate_at_point(Domain domain, std::size_t size, Fill fill) {
  const std::lock_guard guard(hooks->mutex);
  if (!is_sample(size)) return plain_allocate(domain, size, fill);
  const SampledBlock block = next_sample(domain, size);
  if (hooks->uses_slots && size <= SampledBlocks::kSlotBytes) {
    void* slot = sample_in_slot(block, block.size);
    if (slot == nullptr) return plain_allocate(domain, size, fill);
    if (fill == Fill::kZeros) std::memset(slot, 0, size);
    return slot;
  }
  void* at = plain_allocate(domain, size, fill);
  if (at != nullptr) sample_in_place(at, block);
  return at;
}

// The block may be a sample. Returns whether it was a small one, and is freed now.
bool release_if_sampled(const void* at, End end) {
  const std::lock_guard guard(hooks->mutex);
  const auto block = hooks->blocks.find(at);
  if (!block) return false;
  release(at, *block, end);
  hooks->blocks.forget(at);
  return hooks->blocks.is_small(at);
}

// ---- the heap ----

// The slow path of an allocation: the class's list has ended, for the sample that this one is, or for want of blocks.
[[gnu::noinline]] void* allocate_at_end(Domain domain, std::size_t size, Fill fill) {
  const std::size_t size_class = ObjectHeap::class_of(size);
  const std::size_t block_bytes = ObjectHeap::bytes_of(size_class);
  const ObjectHeap::Outcome outcome = hooks->heap.allocate_slowly(size_class);
  void* at = outcome.block;
  if (outcome.is_sample || outcome.blocks_taken != 0) {
    const std::lock_guard guard(hooks->mutex);
    if (hooks->taker != nullptr) hooks->taker->count_bytes(outcome.blocks_taken * block_bytes);
    if (outcome.is_sample && hooks->taker != nullptr && hooks->pauses == 0)
      at = sample_in_slot(next_sample(domain, size), block_bytes);
  }
  if (at == nullptr && outcome.is_sample) at = hooks->heap.take(size_class);
  if (at == nullptr) return plain_allocate(domain, size, fill);
  if (fill == Fill::kZeros) std::memset(at, 0, size);
  return at;
}

// A lock only where several interpreters run at once.
struct NoLock {
  explicit NoLock(std::mutex&) {}
};
template <Tier tier>
using HeapLock = std::conditional_t<tier == Tier::kLockedHeap, std::lock_guard<std::mutex>, NoLock>;

// ---- the hooks, one set for each domain: the context is the original's ----

template <Domain domain>
void* hook_malloc(void*, std::size_t size) {
  countdown.left -= static_cast<std::int64_t>(size);
  if (countdown.left <= 0) [[unlikely]]
    return allocate_at_point(domain, size, Fill::kNothing);
  Allocator& from = original(domain);
  return inside([&] { return from.malloc(from.context, size); });
}

template <Domain domain>
void* hook_calloc(void*, std::size_t count, std::size_t item) {
  std::size_t size = 0;
  Allocator& from = original(domain);
  if (__builtin_mul_overflow(count, item, &size) || size > PTRDIFF_MAX)
    return inside([&] { return from.calloc(from.context, count, item); });
  countdown.left -= static_cast<std::int64_t>(size);
  if (countdown.left <= 0) [[unlikely]]
    return allocate_at_point(domain, size, Fill::kZeros);
  return inside([&] { return from.calloc(from.context, count, item); });
}

template <Domain domain>
void hook_free(void*, void* at) {
  if (hooks->blocks.may_be_sampled(at)) [[unlikely]]
    if (release_if_sampled(at, End::kFreed)) return;
  Allocator& from = original(domain);
  from.free(from.context, at);
}

template <Domain domain, Tier tier>
void* heap_malloc(void*, std::size_t size) {
  const bool is_small = size - 1 < ObjectHeap::kLargest;
  if (!is_small) return hook_malloc<domain>(nullptr, size);
  [[maybe_unused]] const HeapLock<tier> lock(hooks->heap_mutex);
  void* at = hooks->heap.allocate(ObjectHeap::class_of(size));
  return at != nullptr ? at : allocate_at_end(domain, size, Fill::kNothing);
}

template <Domain domain, Tier tier>
void* heap_calloc(void*, std::size_t count, std::size_t item) {
  std::size_t size = 0;
  const bool is_small = !__builtin_mul_overflow(count, item, &size) && size - 1 < ObjectHeap::kLargest;
  if (!is_small) return hook_calloc<domain>(nullptr, count, item);
  [[maybe_unused]] const HeapLock<tier> lock(hooks->heap_mutex);
  void* at = hooks->heap.allocate(ObjectHeap::class_of(size));
  if (at == nullptr) return allocate_at_end(domain, size, Fill::kZeros);
  return std::memset(at, 0, size);
}

template <Domain domain, Tier tier>
void heap_free(void*, void* at) {
  if (!hooks->heap.owns(at)) return hook_free<domain>(nullptr, at);
  [[maybe_unused]] const HeapLock<tier> lock(hooks->heap_mutex);
  hooks->heap.free(at);
}

// A block from whoever gives blocks now.
void* allocate_anew(Domain domain, std::size_t size) {
  const bool is_object = domain == Domain::kObject;
  if (hooks->taker == nullptr) return plain_allocate(domain, size, Fill::kNothing);
  if (!hooks->gives)
    return is_object ? hook_malloc<Domain::kObject>(nullptr, size) : hook_malloc<Domain::kMemory>(nullptr, size);
  if (hooks->tier == Tier::kLockedHeap)
    return is_object ? heap_malloc<Domain::kObject, Tier::kLockedHeap>(nullptr, size)
                     : heap_malloc<Domain::kMemory, Tier::kLockedHeap>(nullptr, size);
  return is_object ? heap_malloc<Domain::kObject, Tier::kHeap>(nullptr, size)
                   : heap_malloc<Domain::kMemory, Tier::kHeap>(nullptr, size);
}

// A new block instead of a small sampled one, with what was in it. As for any realloc, the old one stays if that fails.
void* move_small(Domain domain, void* at, std::size_t size) {
  std::size_t old_size = 0;
  {
    const std::lock_guard guard(hooks->mutex);
    old_size = static_cast<std::size_t>(hooks->blocks.find(at)->size);
  }
  void* moved = allocate_anew(domain, size);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, at, std::min(size, old_size));
  release_if_sampled(at, End::kMoved);
  return moved;
}

// The thread's sample point is in a block that was just made longer or shorter, to `size`: it becomes a sample.
[[gnu::noinline]] void* reallocate_at_point(Domain domain, void* at, std::size_t size) {
  const std::lock_guard guard(hooks->mutex);
  if (!is_sample(size)) return at;
  const SampledBlock block = next_sample(domain, size);
  if (hooks->uses_slots && size <= SampledBlocks::kSlotBytes) {
    void* slot = sample_in_slot(block, block.size);
    if (slot == nullptr) return at;
    std::memcpy(slot, at, size);
    Allocator& from = original(domain);
    from.free(from.context, at);
    return slot;
  }
  sample_in_place(at, block);
  return at;
}

template <Domain domain>
void* hook_realloc(void*, void* at, std::size_t size) {
  if (at == nullptr) return allocate_anew(domain, size);
  if (hooks->blocks.is_small(at)) return move_small(domain, at, size);
  Allocator& from = original(domain);
  if (hooks->blocks.may_be_large(at)) [[unlikely]] {
    const std::lock_guard guard(hooks->mutex);
    const auto block = hooks->blocks.find(at);
    if (block) hooks->blocks.forget(at);  // before others can be given the address
    void* moved = inside([&] { return from.realloc(from.context, at, size); });
    if (block && moved == nullptr) track(at, *block);
    if (block && moved != nullptr) {
      SampledBlock rest = *block;
      rest.size = std::min<std::uint64_t>(rest.size, size);
      release(moved, rest, End::kMoved);
    }
    if (moved == nullptr) return nullptr;
    at = moved;
  } else {
    at = inside([&] { return from.realloc(from.context, at, size); });
    if (at == nullptr) return nullptr;
  }
  countdown.left -= static_cast<std::int64_t>(size);
  return countdown.left <= 0 ? reallocate_at_point(domain, at, size) : at;
}

template <Domain domain, Tier tier>
void* heap_realloc(void*, void* at, std::size_t size) {
  if (at == nullptr) return allocate_anew(domain, size);
  if (!hooks->heap.owns(at)) return hook_realloc<domain>(nullptr, at, size);
  const std::size_t old_size = hooks->heap.size_of(at);
  // As pymalloc does: a block stays where it is, unless that would waste a quarter of it.
  if (size <= old_size && 4 * size > 3 * old_size) return at;
  void* moved = allocate_anew(domain, size);
  if (moved == nullptr) return size <= old_size ? at : nullptr;
  std::memcpy(moved, at, std::min(size, old_size));
  heap_free<domain, tier>(nullptr, at);
  return moved;
}

template <Domain domain, Tier tier>
Allocator hooks_of() {
  if (tier == Tier::kCounting)
    return {nullptr, hook_malloc<domain>, hook_calloc<domain>, hook_realloc<domain>, hook_free<domain>};
  return {nullptr, heap_malloc<domain, tier>, heap_calloc<domain, tier>, heap_realloc<domain, tier>,
          heap_free<domain, tier>};
}

template <Tier tier>
Allocator hooks_of(std::size_t domain) {
  return domain == 0 ? hooks_of<Domain::kObject, tier>() : hooks_of<Domain::kMemory, tier>();
}

// The hooks of the tier at hand.
Allocator all_hooks(std::size_t domain) {
  switch (hooks->tier) {
    case Tier::kHeap: return hooks_of<Tier::kHeap>(domain);
    case Tier::kLockedHeap: return hooks_of<Tier::kLockedHeap>(domain);
    default: return hooks_of<Tier::kCounting>(domain);
  }
}

bool is_current(std::size_t domain) {
  return hooks->table->get(static_cast<Domain>(domain)).free == all_hooks(domain).free;
}

// Whether our hooks are still called. Others' may lie over them; or lay below, and have put back what was there before
// them, and us.
bool is_called(std::size_t domain) {
  if (hooks->extent[domain] == Extent::kNone) return false;
  if (is_current(domain)) return true;
  constexpr std::int64_t kFar = std::int64_t{1} << 40U;
  // What is not small is counted.
  return is_reached(*hooks->table, static_cast<Domain>(domain), countdown, {kFar, kFar, 0, 0, 0},
                    ObjectHeap::kLargest + 1);
}

// Nothing of ours is called any more for what is allocated from now on, if nobody has put hooks of theirs over ours;
// and nothing at all, if no sampled block is alive.
void remove_hooks() {
  for (std::size_t i = 0; i < kDomains; ++i) {
    if (!is_current(i)) continue;
    Allocator rest = hooks->original[i];
    const bool owns_blocks = hooks->tier != Tier::kCounting || hooks->blocks.living() > 0;
    hooks->extent[i] = owns_blocks ? Extent::kFrees : Extent::kNone;
    if (hooks->extent[i] == Extent::kFrees) {
      // They take the original's context for theirs, and use none.
      rest.realloc = all_hooks(i).realloc;
      rest.free = all_hooks(i).free;
    }
    hooks->table->set(static_cast<Domain>(i), rest);
  }
}

Status install_hooks() {
  for (std::size_t i = 0; i < kDomains; ++i) {
    const bool is_buried = hooks->extent[i] != Extent::kNone && !is_current(i);
    if (is_buried && hooks->extent[i] == Extent::kFrees)
      return Error{ErrorKind::kUnsupported,
                   "another tool has put hooks on Python's allocators over those of an earlier recording: "
                   "stop it first"};
    if (is_buried && hooks->extent[i] == Extent::kAll) continue;  // all of ours, which are called by those above
    if (hooks->extent[i] == Extent::kNone) hooks->original[i] = hooks->table->get(static_cast<Domain>(i));
    hooks->table->set(static_cast<Domain>(i), all_hooks(i));
    hooks->extent[i] = Extent::kAll;
  }
  return Ok{};
}

void make_hooks() {
  new (&hooks_storage.hooks) Hooks;
  hooks_are_made = true;
  const auto release_locks = [] {
    hooks->mutex.unlock();
    hooks->heap_mutex.unlock();
  };
  ::pthread_atfork(
      [] {
        hooks->heap_mutex.lock();
        hooks->mutex.lock();
      },
      release_locks,
      [] {
        hooks->mutex.unlock();
        hooks->heap_mutex.unlock();
        hooks->taker = nullptr;  // whose locks threads may have held that do not exist here
      });
}

// For a recording that starts.
Status choose_tier(Interpreters interpreters) {
  // Those that only count own no blocks, and are gone if they are called no more.
  for (std::size_t i = 0; i < kDomains; ++i) {
    if (hooks->tier != Tier::kCounting || hooks->extent[i] == Extent::kNone || is_called(i)) continue;
    hooks->extent[i] = Extent::kNone;
    hooks->blocks.forget_large();  // their frees were not seen, either
  }
  // Blocks in slots may be alive from an earlier recording, which had found it safe.
  const bool is_fresh = hooks->extent == std::array{Extent::kNone, Extent::kNone};
  if (is_fresh) {
    hooks->uses_slots = hooks->table->is_plain();
    hooks->tier = hooks->uses_slots ? Tier::kHeap : Tier::kCounting;
  }
  if (hooks->tier != Tier::kHeap || interpreters == Interpreters::kInTurns) return Ok{};
  if (!is_fresh) return lock_heap();
  hooks->tier = Tier::kLockedHeap;
  return Ok{};
}

bool is_sampling() { return hooks_are_made && hooks->is_active; }

void end_sampling() {
  hooks->is_active = false;
  hooks->taker = nullptr;
  hooks->gives = false;
  hooks->heap.set_distance(0);
}

}  // namespace

Status start_sampling(SampleTaker& taker, AllocatorTable& table, std::uint64_t mean_bytes, Interpreters interpreters) {
  if (!hooks_are_made) make_hooks();
  hooks->table = &table;
  PLIMSOLL_TRY(choose_tier(interpreters));
  {
    const std::lock_guard guard(hooks->mutex);
    hooks->taker = &taker;
    hooks->is_active = true;
    hooks->mean_bytes = mean_bytes;
    hooks->pauses = 0;
    hooks->gives = hooks->tier != Tier::kCounting;
    if (hooks->gives) hooks->heap.set_distance(mean_bytes);
    ++hooks->session;
  }
  // The calling thread begins with its next block; others do within kLookAgain bytes.
  countdown = {0, 0, 0, 0, countdown.random};
  Status installed = install_hooks();
  if (!installed.ok()) end_sampling();
  return installed;
}

Stopped stop_sampling() {
  if (!is_sampling()) return Stopped::kWhole;
  const bool is_whole = is_called(0) && is_called(1);
  {
    const std::lock_guard guard(hooks->mutex);
    if (!is_whole) hooks->blocks.forget_large();  // their memory may be gone
    hooks->blocks.for_each([](const void* at, const SampledBlock& block) { release(at, block, End::kOfTime); });
    end_sampling();
  }
  remove_hooks();
  return is_whole ? Stopped::kWhole : Stopped::kCutShort;
}

void abandon_sampling() {
  if (!is_sampling()) return;
  end_sampling();
  remove_hooks();
}

Status lock_heap() {
  if (!hooks_are_made || hooks->tier != Tier::kHeap) return Ok{};
  for (std::size_t i = 0; i < kDomains; ++i)
    if (!is_current(i))
      return Error{ErrorKind::kUnsupported,
                   "plimsoll samples allocations, and another tool has put hooks of its own over "
                   "them: interpreters cannot be added now"};
  for (std::size_t i = 0; i < kDomains; ++i) {
    Allocator now = hooks->table->get(static_cast<Domain>(i));
    const Allocator locked = hooks_of<Tier::kLockedHeap>(i);
    const bool is_all = now.malloc == all_hooks(i).malloc;
    now.realloc = locked.realloc;
    now.free = locked.free;
    if (is_all) now.malloc = locked.malloc;
    if (is_all) now.calloc = locked.calloc;
    hooks->table->set(static_cast<Domain>(i), now);
  }
  hooks->tier = Tier::kLockedHeap;
  return Ok{};
}

std::optional<std::uint64_t> sample_at(const void* block) {
  if (!is_sampling() || !hooks->blocks.may_be_sampled(block)) return std::nullopt;
  const std::lock_guard guard(hooks->mutex);
  const std::optional<SampledBlock> found = hooks->blocks.find_living(block);
  return found && found->session == hooks->session ? std::optional(found->number) : std::nullopt;
}

void pause_sampling() {
  if (!hooks_are_made) return;
  const std::lock_guard guard(hooks->mutex);
  ++hooks->pauses;
}

void resume_sampling() {
  if (!hooks_are_made) return;
  const std::lock_guard guard(hooks->mutex);
  hooks->pauses = std::max(0, hooks->pauses - 1);
}

std::size_t living_samples() { return hooks_are_made ? hooks->blocks.living() : 0; }

void forget_hooks() {
  if (!hooks_are_made) return;
  hooks_storage.hooks.~Hooks();
  new (&hooks_storage.hooks) Hooks;
  countdown = {0, 0, 0, 0, countdown.random};
}

}  // namespace plimsoll::alloc
