// alloc/sampling_state.h: what the hooks that sample Python's allocators share.
//
// For the hooks themselves (sampling_python.cc), and for who puts them there (sampling_hooks.cc).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

#include "alloc/allocator_table.h"
#include "alloc/object_heap.h"
#include "alloc/sampled_blocks.h"
#include "alloc/sampling_hooks.h"
#include "base/static_storage.h"
#include "os/os.h"

namespace plimsoll::alloc::sampling {

inline constexpr std::size_t kMostSmallBlocks = std::size_t{1} << 22U;  // 2 GiB of addresses
inline constexpr std::size_t kHeapBytes = std::size_t{1} << 36U;        // of addresses
// Bytes until a thread looks again whether and how it is to sample, at the latest.
inline constexpr std::int64_t kLookAgain = std::int64_t{1} << 16U;
// From one recording's ground to the next one's: more than any countdown's height above it.
inline constexpr std::int64_t kGroundStep = 4 * kLookAgain;

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
  // Where all countdowns end. Higher in each recording, so that what an earlier one has left of a thread's is at its
  // end, too: every thread begins with its next block. Read without the lock, where it takes no instruction more.
  std::int64_t ground = 0;
  ObjectHeap heap{kHeapBytes, os::random_seed()};
  std::mutex heap_mutex;  // for Tier::kLockedHeap; before `mutex` where both are held
  Tier tier = Tier::kCounting;
  std::uint64_t untold_bytes = 0;   // that the heap has given out: the taker gets to know them in portions
  std::atomic<bool> gives = false;  // whether the heap gives out blocks, and does not only take them back
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

extern constinit StaticStorage<Hooks> hooks_storage;
inline constinit Hooks* const hooks = &hooks_storage.value;

// What a thread has left to allocate before it reaches its next sample point. Constant-initialised and in the
// executable's own TLS block (initial-exec), so that counting is one subtraction in memory.
struct Countdown {
  std::int64_t left = 0;      // at hooks->ground the slow path is due: for the point, or to look again
  std::int64_t last = 0;      // what `left` was when it last was
  std::int64_t beyond = 0;    // bytes from the ground to the point
  std::uint32_t session = 0;  // the recording that this is for
  std::uint64_t random = 0;
};
[[gnu::tls_model("initial-exec")]] extern thread_local constinit Countdown countdown;

// Tells what becomes of a sampled block. With the lock held.
inline void release(const void* at, const SampledBlock& block, End end) {
  if (hooks->taker != nullptr && block.session == hooks->session) hooks->taker->ended(at, block, end);
}

// So many bytes have been given out. While paused they do not count, as nothing is sampled. With the lock held.
inline void count_bytes(std::uint64_t bytes) {
  if (hooks->taker != nullptr && hooks->pauses == 0) hooks->taker->count_bytes(bytes);
}

// Tells how much the heap has given out. With both locks held, or the GIL in place of the heap's.
inline void tell_bytes() { count_bytes(std::exchange(hooks->untold_bytes, 0)); }

}  // namespace plimsoll::alloc::sampling
