#include "python/allocation_hook.h"

#include <Python.h>
#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <new>
#include <type_traits>

#include "alloc/object_heap.h"
#include "alloc/sampled_blocks.h"
#include "base/poisson.h"
#include "os/os.h"
#include "python/compat.h"
#include "python/object_type.h"

namespace plimsoll::python {
namespace {

using alloc::SampledBlock;
using capture::AllocationDomain;

constexpr std::array<PyMemAllocatorDomain, 2> kDomains{PYMEM_DOMAIN_OBJ, PYMEM_DOMAIN_MEM};
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
  std::array<PyMemAllocatorEx, 2> original{};  // by AllocationDomain; written before any hook can be called
  alloc::ObjectHeap heap{kHeapBytes, os::random_seed()};
  std::mutex heap_mutex;  // for Tier::kLockedHeap; before `mutex` where both are held
  Tier tier = Tier::kCounting;
  bool gives = false;  // whether the heap gives out blocks, and does not only take them back
  alloc::SampledBlocks blocks{kMostSmallBlocks};

  // Guards what follows, and the blocks: interpreters with GILs of their own share all this.
  std::mutex mutex;
  capture::AllocationRecorder* recorder = nullptr;
  std::uint64_t mean_bytes = 0;
  std::uint32_t session = 0;
  int pauses = 0;
  bool uses_slots = false;  // whether small sampled blocks live in slots of ours
  std::array<Extent, 2> extent{};
};

// In static memory, but made at first use and never destroyed: the compiler knows the address, and nobody waits for it.
union HooksStorage {
  constexpr HooksStorage() : nothing(0) {}
  ~HooksStorage() {}
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
  const bool samples = hooks->recorder != nullptr && hooks->pauses == 0;
  if (!samples) {
    countdown = {kLookAgain, kLookAgain, 0, 0, countdown.random};
    return false;
  }
  if (countdown.session != hooks->session) {  // it begins here: this block is the first that counts
    countdown = {0, 0, 0, hooks->session, countdown.random};
    countdown.beyond = draw_distance();
    countdown.left = -static_cast<std::int64_t>(size);
  }
  hooks->recorder->count_bytes(static_cast<std::uint64_t>(countdown.last - countdown.left));
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

PyMemAllocatorEx& original(AllocationDomain domain) { return hooks->original[static_cast<std::size_t>(domain)]; }

void* plain_allocate(AllocationDomain domain, std::size_t size, Fill fill) {
  PyMemAllocatorEx& from = original(domain);
  return fill == Fill::kZeros ? from.calloc(from.ctx, 1, size) : from.malloc(from.ctx, size);
}

SampledBlock next_sample(AllocationDomain domain, std::size_t size) {
  return {hooks->recorder->next_number(), size, hooks->session, static_cast<std::uint32_t>(domain)};
}

// A sampled block has been allocated: notes the stack. False if it could not be noted. `chance_bytes` is what its
// chance of being sampled came from.
bool record(const SampledBlock& block, std::uint64_t chance_bytes) {
  capture::RawAllocation raw;
  raw.number = block.number;
  raw.size = block.size;
  raw.chance_bytes = std::max<std::uint64_t>(chance_bytes, 1);
  raw.domain = static_cast<AllocationDomain>(block.kind);
  return hooks->recorder->allocated(raw);
}

// A block is a sample, and lives at `at`, outside our region.
void sample_in_place(const void* at, const SampledBlock& block) {
  if (record(block, block.size)) hooks->blocks.track(at, block);
}

// A slot of ours for a sampled block, noted; nullptr if there is none for it, or it could not be noted.
void* sample_in_slot(const SampledBlock& block, std::uint64_t chance_bytes) {
  void* slot = hooks->uses_slots ? hooks->blocks.place(block) : nullptr;
  if (slot == nullptr || record(block, chance_bytes)) return slot;
  hooks->blocks.forget(slot);
  return nullptr;
}

// The slow path of an allocation: the thread's sample point is in this block, or it has to draw one.
[[gnu::noinline]] void* allocate_at_point(AllocationDomain domain, std::size_t size, Fill fill) {
  const std::lock_guard guard(hooks->mutex);
  if (!is_sample(size)) return plain_allocate(domain, size, fill);
  const SampledBlock block = next_sample(domain, size);
  if (hooks->uses_slots && size <= alloc::SampledBlocks::kSlotBytes) {
    void* slot = sample_in_slot(block, block.size);
    if (slot == nullptr) return plain_allocate(domain, size, fill);
    if (fill == Fill::kZeros) std::memset(slot, 0, size);
    return slot;
  }
  void* at = plain_allocate(domain, size, fill);
  if (at != nullptr) sample_in_place(at, block);
  return at;
}

// How a sampled block comes to its end.
enum class End {
  kFreed,
  kMoved,   // by realloc: what is in it lives on elsewhere
  kOfTime,  // it does not: the recording ends, the block lives
};

// Tells the recorder what becomes of a sampled block, and its type. With the lock held.
void release(const void* at, const SampledBlock& block, End end) {
  if (hooks->recorder == nullptr || block.session != hooks->session) return;
  capture::RawRelease raw;
  raw.number = block.number;
  raw.is_freed = end == End::kOfTime ? 0 : 1;
  if (static_cast<AllocationDomain>(block.kind) == AllocationDomain::kObject) {
    const ObjectState state = end == End::kFreed ? ObjectState::kDying : ObjectState::kAlive;
    if (const auto name = type_of_object_in(at, block.size, state)) {
      raw.type_length = static_cast<std::uint8_t>(std::min(name->size(), sizeof raw.type));
      std::memcpy(raw.type, name->data(), raw.type_length);
    }
  }
  if (raw.is_freed != 0 || raw.type_length != 0) hooks->recorder->released(raw);
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
[[gnu::noinline]] void* allocate_at_end(AllocationDomain domain, std::size_t size, Fill fill) {
  const std::size_t size_class = alloc::ObjectHeap::class_of(size);
  const std::size_t block_bytes = alloc::ObjectHeap::bytes_of(size_class);
  const alloc::ObjectHeap::Outcome outcome = hooks->heap.allocate_slowly(size_class);
  void* at = outcome.block;
  if (outcome.is_sample || outcome.blocks_taken != 0) {
    const std::lock_guard guard(hooks->mutex);
    if (hooks->recorder != nullptr) hooks->recorder->count_bytes(outcome.blocks_taken * block_bytes);
    if (outcome.is_sample && hooks->recorder != nullptr && hooks->pauses == 0)
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

template <AllocationDomain domain>
void* hook_malloc(void*, std::size_t size) {
  countdown.left -= static_cast<std::int64_t>(size);
  if (countdown.left <= 0) [[unlikely]]
    return allocate_at_point(domain, size, Fill::kNothing);
  PyMemAllocatorEx& from = original(domain);
  return from.malloc(from.ctx, size);
}

template <AllocationDomain domain>
void* hook_calloc(void*, std::size_t count, std::size_t item) {
  std::size_t size = 0;
  PyMemAllocatorEx& from = original(domain);
  if (__builtin_mul_overflow(count, item, &size) || size > PY_SSIZE_T_MAX) return from.calloc(from.ctx, count, item);
  countdown.left -= static_cast<std::int64_t>(size);
  if (countdown.left <= 0) [[unlikely]]
    return allocate_at_point(domain, size, Fill::kZeros);
  return from.calloc(from.ctx, count, item);
}

template <AllocationDomain domain>
void hook_free(void*, void* at) {
  if (hooks->blocks.may_be_sampled(at)) [[unlikely]]
    if (release_if_sampled(at, End::kFreed)) return;
  PyMemAllocatorEx& from = original(domain);
  from.free(from.ctx, at);
}

template <AllocationDomain domain, Tier tier>
void* heap_malloc(void*, std::size_t size) {
  const bool is_small = size - 1 < alloc::ObjectHeap::kLargest;
  if (!is_small) return hook_malloc<domain>(nullptr, size);
  [[maybe_unused]] const HeapLock<tier> lock(hooks->heap_mutex);
  void* at = hooks->heap.allocate(alloc::ObjectHeap::class_of(size));
  return at != nullptr ? at : allocate_at_end(domain, size, Fill::kNothing);
}

template <AllocationDomain domain, Tier tier>
void* heap_calloc(void*, std::size_t count, std::size_t item) {
  std::size_t size = 0;
  const bool is_small = !__builtin_mul_overflow(count, item, &size) && size - 1 < alloc::ObjectHeap::kLargest;
  if (!is_small) return hook_calloc<domain>(nullptr, count, item);
  [[maybe_unused]] const HeapLock<tier> lock(hooks->heap_mutex);
  void* at = hooks->heap.allocate(alloc::ObjectHeap::class_of(size));
  if (at == nullptr) return allocate_at_end(domain, size, Fill::kZeros);
  return std::memset(at, 0, size);
}

template <AllocationDomain domain, Tier tier>
void heap_free(void*, void* at) {
  if (!hooks->heap.owns(at)) return hook_free<domain>(nullptr, at);
  [[maybe_unused]] const HeapLock<tier> lock(hooks->heap_mutex);
  hooks->heap.free(at);
}

// A block from whoever gives blocks now.
void* allocate_anew(AllocationDomain domain, std::size_t size) {
  const bool is_object = domain == AllocationDomain::kObject;
  if (hooks->recorder == nullptr) return plain_allocate(domain, size, Fill::kNothing);
  if (!hooks->gives)
    return is_object ? hook_malloc<AllocationDomain::kObject>(nullptr, size)
                     : hook_malloc<AllocationDomain::kMemory>(nullptr, size);
  if (hooks->tier == Tier::kLockedHeap)
    return is_object ? heap_malloc<AllocationDomain::kObject, Tier::kLockedHeap>(nullptr, size)
                     : heap_malloc<AllocationDomain::kMemory, Tier::kLockedHeap>(nullptr, size);
  return is_object ? heap_malloc<AllocationDomain::kObject, Tier::kHeap>(nullptr, size)
                   : heap_malloc<AllocationDomain::kMemory, Tier::kHeap>(nullptr, size);
}

// A new block instead of a small sampled one, with what was in it. As for any realloc, the old one stays if that fails.
void* move_small(AllocationDomain domain, void* at, std::size_t size) {
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
[[gnu::noinline]] void* reallocate_at_point(AllocationDomain domain, void* at, std::size_t size) {
  const std::lock_guard guard(hooks->mutex);
  if (!is_sample(size)) return at;
  const SampledBlock block = next_sample(domain, size);
  if (hooks->uses_slots && size <= alloc::SampledBlocks::kSlotBytes) {
    void* slot = sample_in_slot(block, block.size);
    if (slot == nullptr) return at;
    std::memcpy(slot, at, size);
    PyMemAllocatorEx& from = original(domain);
    from.free(from.ctx, at);
    return slot;
  }
  sample_in_place(at, block);
  return at;
}

template <AllocationDomain domain>
void* hook_realloc(void*, void* at, std::size_t size) {
  if (at == nullptr) return allocate_anew(domain, size);
  if (hooks->blocks.is_small(at)) return move_small(domain, at, size);
  PyMemAllocatorEx& from = original(domain);
  if (hooks->blocks.may_be_large(at)) [[unlikely]] {
    const std::lock_guard guard(hooks->mutex);
    const auto block = hooks->blocks.find(at);
    if (block) hooks->blocks.forget(at);  // before others can be given the address
    void* moved = from.realloc(from.ctx, at, size);
    if (block && moved == nullptr) hooks->blocks.track(at, *block);
    if (block && moved != nullptr) release(moved, *block, End::kMoved);
    if (moved == nullptr) return nullptr;
    at = moved;
  } else {
    at = from.realloc(from.ctx, at, size);
    if (at == nullptr) return nullptr;
  }
  countdown.left -= static_cast<std::int64_t>(size);
  return countdown.left <= 0 ? reallocate_at_point(domain, at, size) : at;
}

template <AllocationDomain domain, Tier tier>
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

template <AllocationDomain domain, Tier tier>
PyMemAllocatorEx hooks_of() {
  if (tier == Tier::kCounting)
    return {nullptr, hook_malloc<domain>, hook_calloc<domain>, hook_realloc<domain>, hook_free<domain>};
  return {nullptr, heap_malloc<domain, tier>, heap_calloc<domain, tier>, heap_realloc<domain, tier>,
          heap_free<domain, tier>};
}

template <Tier tier>
PyMemAllocatorEx hooks_of(std::size_t domain) {
  return domain == 0 ? hooks_of<AllocationDomain::kObject, tier>() : hooks_of<AllocationDomain::kMemory, tier>();
}

// The hooks of the tier at hand.
PyMemAllocatorEx all_hooks(std::size_t domain) {
  switch (hooks->tier) {
    case Tier::kHeap: return hooks_of<Tier::kHeap>(domain);
    case Tier::kLockedHeap: return hooks_of<Tier::kLockedHeap>(domain);
    default: return hooks_of<Tier::kCounting>(domain);
  }
}

bool is_current(std::size_t domain) {
  PyMemAllocatorEx now{};
  PyMem_GetAllocator(kDomains[domain], &now);
  return now.free == all_hooks(domain).free;
}

// Nothing of ours is called any more for what is allocated from now on, if nobody has put hooks of theirs over ours;
// and nothing at all, if no sampled block is alive.
void remove_hooks() {
  for (std::size_t i = 0; i < kDomains.size(); ++i) {
    if (!is_current(i)) continue;
    PyMemAllocatorEx rest = hooks->original[i];
    const bool owns_blocks = hooks->tier != Tier::kCounting || hooks->blocks.living() > 0;
    hooks->extent[i] = owns_blocks ? Extent::kFrees : Extent::kNone;
    if (hooks->extent[i] == Extent::kFrees) {
      // They take the original's context for theirs, and use none.
      rest.realloc = all_hooks(i).realloc;
      rest.free = all_hooks(i).free;
    }
    PyMem_SetAllocator(kDomains[i], &rest);
  }
}

Status install_hooks() {
  for (std::size_t i = 0; i < kDomains.size(); ++i) {
    const bool is_buried = hooks->extent[i] != Extent::kNone && !is_current(i);
    if (is_buried && hooks->extent[i] == Extent::kFrees)
      return Error{ErrorKind::kUnsupported,
                   "another tool has put hooks on Python's allocators over those of an earlier recording: "
                   "stop it first"};
    if (is_buried) continue;  // all of ours, which are called by those above
    if (hooks->extent[i] == Extent::kNone) PyMem_GetAllocator(kDomains[i], &hooks->original[i]);
    PyMemAllocatorEx ours = all_hooks(i);
    PyMem_SetAllocator(kDomains[i], &ours);
    hooks->extent[i] = Extent::kAll;
  }
  return Ok{};
}

// Whether Python's own allocator lies below, and nothing else.
bool is_plain_below() {
  using NameOfAllocator = const char* (*)();
  const auto name_of = reinterpret_cast<NameOfAllocator>(::dlsym(RTLD_DEFAULT, "_PyMem_GetCurrentAllocatorName"));
  const char* name = name_of != nullptr ? name_of() : nullptr;
  return name != nullptr && std::strcmp(name, "pymalloc") == 0;
}

// Whether there are interpreters that run at the same time, or may be at any moment.
bool may_have_interpreters_of_own_gil() {
  if (!kInterpretersHaveOwnGils) return false;
  PyInterpreterState* first = PyInterpreterState_Head();
  if (first != nullptr && PyInterpreterState_Next(first) != nullptr) return true;
  PyObject* modules = PyImport_GetModuleDict();
  return std::any_of(kInterpreterModules.begin(), kInterpreterModules.end(), [&](const char* name) {
    return modules != nullptr && PyDict_GetItemString(modules, name) != nullptr;
  });
}

}  // namespace

Status can_sample_allocations() {
  if (!kIsFreeThreaded) return Ok{};
  return Error{ErrorKind::kUnsupported,
               "free-threaded builds of Python cannot sample allocations yet: leave out --alloc (alloc_bytes)"};
}

Status start_allocation_sampling(capture::AllocationRecorder& recorder, std::uint64_t mean_bytes) {
  PLIMSOLL_TRY(can_sample_allocations());
  if (!hooks_are_made) {
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
        release_locks, release_locks);
  }
  {
    const std::lock_guard guard(hooks->mutex);
    hooks->recorder = &recorder;
    hooks->mean_bytes = mean_bytes;
    hooks->pauses = 0;
    // Blocks in slots may be alive from an earlier recording, which had found it safe.
    if (hooks->extent[0] == Extent::kNone) {
      hooks->uses_slots = is_plain_below();
      if (hooks->uses_slots) hooks->tier = Tier::kHeap;
    }
    if (hooks->tier == Tier::kHeap && may_have_interpreters_of_own_gil()) hooks->tier = Tier::kLockedHeap;
    hooks->gives = hooks->tier != Tier::kCounting;
    if (hooks->gives) hooks->heap.set_distance(mean_bytes);
    ++hooks->session;
  }
  // The calling thread begins with its next block; others do within kLookAgain bytes.
  countdown = {0, 0, 0, 0, countdown.random};
  const Status installed = install_hooks();
  if (!installed.ok()) hooks->recorder = nullptr;
  return installed;
}

void stop_allocation_sampling() {
  if (!hooks_are_made || hooks->recorder == nullptr) return;
  {
    const std::lock_guard guard(hooks->mutex);
    hooks->blocks.for_each([](const void* at, const SampledBlock& block) { release(at, block, End::kOfTime); });
    hooks->recorder->flush_releases();
    hooks->recorder = nullptr;
    hooks->gives = false;
    hooks->heap.set_distance(0);
  }
  remove_hooks();
}

void abandon_allocation_sampling() {
  if (!hooks_are_made || hooks->recorder == nullptr) return;
  hooks->recorder = nullptr;
  hooks->gives = false;
  hooks->heap.set_distance(0);
  remove_hooks();
}

Status prepare_for_interpreter() {
  if (!hooks_are_made || hooks->tier != Tier::kHeap || !kInterpretersHaveOwnGils) return Ok{};
  for (std::size_t i = 0; i < kDomains.size(); ++i)
    if (!is_current(i))
      return Error{ErrorKind::kUnsupported,
                   "plimsoll samples allocations, and another tool has put hooks of its own over "
                   "them: interpreters cannot be added now"};
  for (std::size_t i = 0; i < kDomains.size(); ++i) {
    PyMemAllocatorEx now{};
    PyMem_GetAllocator(kDomains[i], &now);
    const PyMemAllocatorEx locked = hooks_of<Tier::kLockedHeap>(i);
    const bool is_all = now.malloc == all_hooks(i).malloc;
    now.realloc = locked.realloc;
    now.free = locked.free;
    if (is_all) now.malloc = locked.malloc;
    if (is_all) now.calloc = locked.calloc;
    PyMem_SetAllocator(kDomains[i], &now);
  }
  hooks->tier = Tier::kLockedHeap;
  return Ok{};
}

void pause_allocation_sampling() {
  if (!hooks_are_made) return;
  const std::lock_guard guard(hooks->mutex);
  ++hooks->pauses;
}

void resume_allocation_sampling() {
  if (!hooks_are_made) return;
  const std::lock_guard guard(hooks->mutex);
  hooks->pauses = std::max(0, hooks->pauses - 1);
}

}  // namespace plimsoll::python
