#include "alloc/sampling_hooks.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <utility>

#include "alloc/sampling_python.h"
#include "os/available_memory.h"

namespace plimsoll::alloc {

namespace sampling {

constinit StaticStorage<Hooks> hooks_storage;
thread_local constinit Countdown countdown;

}  // namespace sampling

using namespace sampling;  // NOLINT(google-build-using-namespace): ours, of which this is the outside

namespace {

bool hooks_are_made = false;

// The hooks of the tier at hand.
Allocator all_hooks(std::size_t domain) { return hooks_of(hooks->tier, domain); }

bool is_current(std::size_t domain) {
  return hooks->table->get(static_cast<Domain>(domain)).free == all_hooks(domain).free;
}

// Whether our hooks are still called. Others' may lie over them; or lay below, and have put back what was there before
// them, and us.
bool is_called(std::size_t domain) {
  if (hooks->extent[domain] == Extent::kNone) return false;
  if (is_current(domain)) return true;
  constexpr std::int64_t kFar = std::int64_t{1} << 62U;
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
  new (&hooks_storage.value) Hooks;
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

// Hooks that others' lie over stay in place, and interpreters may run at once when nobody records: the heap, which has
// no lock, must not give them anything then.
void close_heap() {
  hooks->gives = false;
  hooks->heap.close();
}

// Bytes are told when lists are handed out: not all of the last ones has been used. (A sum may be taken off: it is
// counted in a circle.) And what the calling thread has not told is little, but may be all that there is.
void tell_all_bytes() {
  if (hooks->gives) hooks->untold_bytes -= hooks->heap.unused_bytes();
  if (countdown.session == hooks->session)
    hooks->untold_bytes += static_cast<std::uint64_t>(countdown.last - countdown.left);
  countdown.last = countdown.left;
  tell_bytes();
}

void end_sampling() {
  hooks->is_active = false;
  hooks->taker = nullptr;
  close_heap();
}

}  // namespace

Status start_sampling(SampleTaker& taker, AllocatorTable& table, std::uint64_t mean_bytes, Interpreters interpreters) {
  if (!hooks_are_made) make_hooks();
  hooks->table = &table;
  PLIMSOLL_TRY(choose_tier(interpreters));
  {
    const std::scoped_lock guard(hooks->heap_mutex, hooks->mutex);
    hooks->taker = &taker;
    hooks->is_active = true;
    hooks->mean_bytes = mean_bytes;
    hooks->pauses = 0;
    hooks->gives = hooks->tier != Tier::kCounting;
    // What an earlier recording has left of its lists is given out first.
    hooks->untold_bytes = hooks->gives ? hooks->heap.unused_bytes() : 0;
    if (hooks->gives) hooks->heap.set_distance(mean_bytes);
    ++hooks->session;
    hooks->ground += kGroundStep;
  }
  Status installed = install_hooks();
  if (!installed.ok()) abandon_sampling();
  return installed;
}

Stopped stop_sampling() {
  if (!is_sampling()) return Stopped::kWhole;
  const bool is_whole = is_called(0) && is_called(1);
  {
    const std::scoped_lock guard(hooks->heap_mutex, hooks->mutex);
    if (!is_whole) hooks->blocks.forget_large();  // their memory may be gone
    hooks->blocks.for_each([](const void* at, const SampledBlock& block) { release(at, block, End::kOfTime); });
    tell_all_bytes();
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
                   "plimsoll records allocations, and another tool has put hooks of its own over "
                   "plimsoll's: interpreters cannot be added now"};
  for (std::size_t i = 0; i < kDomains; ++i) {
    Allocator now = hooks->table->get(static_cast<Domain>(i));
    const Allocator locked = hooks_of(Tier::kLockedHeap, i);
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

void start_heap(AllocatorTable& table, Interpreters interpreters) {
  if (interpreters != Interpreters::kInTurns) return;
  if (!hooks_are_made) make_hooks();
  hooks->table = &table;
  if (!choose_tier(interpreters).ok() || hooks->tier != Tier::kHeap) return;
  hooks->gives = true;
  hooks->heap.set_distance(0);
  if (!install_hooks().ok()) stop_heap();
}

void stop_heap() {
  if (!hooks_are_made || hooks->table == nullptr) return;
  close_heap();
  remove_hooks();
}

bool is_heap(Domain domain, const Allocator& allocator) {
  return allocator.malloc == hooks_of(Tier::kHeap, static_cast<std::size_t>(domain)).malloc;
}

std::optional<std::uint64_t> sample_at(const void* block) {
  if (!is_sampling() || !hooks->blocks.may_be_sampled(block)) return std::nullopt;
  const std::lock_guard guard(hooks->mutex);
  const std::optional<SampledBlock> found = hooks->blocks.find_living(block);
  return found && found->session == hooks->session ? std::optional(found->number) : std::nullopt;
}

std::vector<HeapPage> heap_pages() {
  if (!hooks_are_made) return {};
  const std::scoped_lock guard(hooks->heap_mutex);  // of interpreters that run at once
  return hooks->heap.pages();
}

void pause_sampling() {
  if (!hooks_are_made) return;
  const std::scoped_lock guard(hooks->heap_mutex, hooks->mutex);
  if (hooks->pauses == 0 && hooks->taker != nullptr) tell_all_bytes();
  ++hooks->pauses;
}

void resume_sampling() {
  if (!hooks_are_made) return;
  const std::scoped_lock guard(hooks->heap_mutex, hooks->mutex);
  if (hooks->pauses == 0 || --hooks->pauses > 0) return;
  // What is left of the lists is given out from now on, and what the thread has had until now is not told.
  hooks->untold_bytes = hooks->gives ? hooks->heap.unused_bytes() : 0;
  if (countdown.session == hooks->session) countdown.last = countdown.left;
}

void prepare_for_address_limit(std::uint64_t bytes) {
  if (!hooks_are_made || bytes >= os::address_space_used()) return;
  const std::scoped_lock guard(hooks->heap_mutex, hooks->mutex);
  hooks->heap.keep_addresses(bytes / 4);
  hooks->blocks.keep_addresses(bytes / 16);
}

std::size_t living_samples() { return hooks_are_made ? hooks->blocks.living() : 0; }

void forget_hooks() {
  if (!hooks_are_made) return;
  hooks_storage.value.~Hooks();
  new (&hooks_storage.value) Hooks;
  countdown = {0, 0, 0, 0, countdown.random};
}

}  // namespace plimsoll::alloc
