#include "alloc/sampling_python.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <type_traits>
#include <utility>

#include "base/inside.h"
#include "base/poisson.h"

namespace plimsoll::alloc::sampling {
namespace {

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
  const std::int64_t ground = hooks->ground;
  if (hooks->taker == nullptr) {
    countdown = {ground + kLookAgain, ground + kLookAgain, 0, 0, countdown.random};
    return false;
  }
  if (countdown.session != hooks->session) {  // it begins here: this block is the first that counts
    countdown = {ground, ground, 0, hooks->session, countdown.random};
    countdown.beyond = draw_distance();
    countdown.left -= static_cast<std::int64_t>(size);
  }
  count_bytes(static_cast<std::uint64_t>(countdown.last - countdown.left));
  while (countdown.left <= ground && countdown.beyond > 0) move_on();
  const bool is_reached = countdown.left <= ground;
  if (is_reached) {
    countdown.left = ground;
    countdown.beyond = draw_distance();
    move_on();
  }
  countdown.last = countdown.left;
  // A point that comes while paused is passed over. How far it is from any place to the next one does not depend on
  // where the last one was, so those behind the pause are where they should be.
  return is_reached && hooks->pauses == 0;
}

// Counts a block. Whether the thread's countdown is at its end.
bool is_due(std::size_t size) {
  countdown.left -= static_cast<std::int64_t>(size);
  return countdown.left <= hooks->ground;
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
  if (hooks->uses_slots && size <= SampledBlocks::kSlotBytes) {
    void* slot = is_sample(size) ? sample_in_slot(next_sample(domain, size), size) : nullptr;
    if (slot == nullptr) return plain_allocate(domain, size, fill);
    if (fill == Fill::kZeros) std::memset(slot, 0, size);
    return slot;
  }
  // What is not given out does not count, however much was asked for.
  void* at = plain_allocate(domain, size, fill);
  if (at == nullptr)
    countdown.left += static_cast<std::int64_t>(size);
  else if (is_sample(size))
    sample_in_place(at, next_sample(domain, size));
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

// Bytes that the heap has given out are told when they are so many: the lock is not worth its time for each list.
constexpr std::uint64_t kToldAtOnce = std::uint64_t{1} << 16U;

// The slow path of an allocation: the class's list has ended, for the sample that this one is, or for want of blocks.
[[gnu::noinline]] void* allocate_at_end(Domain domain, std::size_t size, Fill fill) {
  if (!hooks->gives) return plain_allocate(domain, size, fill);
  const std::size_t size_class = ObjectHeap::class_of(size);
  const std::size_t block_bytes = ObjectHeap::bytes_of(size_class);
  const ObjectHeap::Outcome outcome = hooks->heap.allocate_slowly(size_class);
  void* at = outcome.block;
  hooks->untold_bytes += outcome.blocks_taken * block_bytes;
  if (outcome.is_sample || hooks->untold_bytes >= kToldAtOnce) {
    const std::lock_guard guard(hooks->mutex);
    tell_bytes();
    if (outcome.is_sample && hooks->taker != nullptr && hooks->pauses == 0)
      at = sample_in_slot(next_sample(domain, size), block_bytes);
    if (at != nullptr && outcome.is_sample) hooks->untold_bytes += block_bytes;  // which is of no list
  }
  if (at == nullptr && outcome.is_sample) {
    const ObjectHeap::Outcome taken = hooks->heap.take(size_class);
    at = taken.block;
    hooks->untold_bytes += taken.blocks_taken * block_bytes;
  }
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
  if (is_due(size)) [[unlikely]]
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
  if (is_due(size)) [[unlikely]]
    return allocate_at_point(domain, size, Fill::kZeros);
  return inside([&] { return from.calloc(from.context, count, item); });
}

// Not inlined: what it calls would have each free of a block of the heap's save registers, an eighth of its time.
template <Domain domain>
[[gnu::noinline]] void hook_free(void*, void* at) {
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
  return is_due(size) ? reallocate_at_point(domain, at, size) : at;
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
Allocator hooks_for() {
  if (tier == Tier::kCounting)
    return {nullptr, hook_malloc<domain>, hook_calloc<domain>, hook_realloc<domain>, hook_free<domain>};
  return {nullptr, heap_malloc<domain, tier>, heap_calloc<domain, tier>, heap_realloc<domain, tier>,
          heap_free<domain, tier>};
}

template <Tier tier>
Allocator hooks_for(std::size_t domain) {
  return domain == 0 ? hooks_for<Domain::kObject, tier>() : hooks_for<Domain::kMemory, tier>();
}

}  // namespace

Allocator hooks_of(Tier tier, std::size_t domain) {
  switch (tier) {
    case Tier::kHeap: return hooks_for<Tier::kHeap>(domain);
    case Tier::kLockedHeap: return hooks_for<Tier::kLockedHeap>(domain);
    default: return hooks_for<Tier::kCounting>(domain);
  }
}

}  // namespace plimsoll::alloc::sampling
