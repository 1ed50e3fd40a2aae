// alloc/sampling_hooks.h: samples what a program allocates, by hooks in the place of its allocators.
//
// Blocks of at most 512 bytes come from an ObjectHeap, whose slow path is where samples are taken; larger ones from the
// allocator below, and a thread counts their bytes down to its next sample point, at an exponential distance. A small
// sampled block lies in a region of ours, so that one comparison tells it when it is freed.
//
// All that only where the runtime's own allocator lies below, and nothing else: hooks that were there before ours may
// put back what was there before them, and then our blocks would be freed by an allocator that does not know them. With
// such hooks blocks of all sizes come from below, are counted, and sampled ones are told by a filter.
//
// Blocks from before are freed by their owner, ours by us after the hooks were taken out, too: those for frees stay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "alloc/allocator_table.h"
#include "alloc/object_heap.h"
#include "alloc/sampled_blocks.h"
#include "base/result.h"

namespace plimsoll::alloc {

// How a sampled block comes to its end.
enum class End : std::uint8_t {
  kFreed,
  kMoved,   // by realloc: what is in it lives on elsewhere
  kOfTime,  // it does not: the recording ends, the block lives
};

// Who is told of the samples. Called in the thread that allocates or frees, by these hooks with a lock held: it must
// not use the allocators.
class SampleTaker {
 public:
  // Of the next sample; each comes once.
  virtual std::uint64_t next_number() = 0;
  // False if the sample is lost: then nothing more is told of it.
  virtual bool allocated(const SampledBlock& block, std::uint64_t chance_bytes) = 0;
  // What was in the block still is, up to `block.size`, which is less than before if the block was made shorter; or it
  // is not known where, and `at` is null.
  virtual void ended(const void* at, const SampledBlock& block, End end) = 0;
  // So many bytes have been given out, sampled or not; at the end some may be taken off, modulo 2^64.
  virtual void count_bytes(std::uint64_t bytes) = 0;

 protected:
  ~SampleTaker() = default;
};

// The caller serialises these. One recording at a time; both objects must outlive it, and the table all blocks.
Status start_sampling(SampleTaker& taker, AllocatorTable& table, std::uint64_t mean_bytes, Interpreters interpreters);
// Tells the end (kOfTime) of the sampled blocks that are alive, and nothing from then on.
Stopped stop_sampling();
// Likewise, but tells nothing.
void abandon_sampling();
// The allocators may be called by several threads at the same time from now on.
Status lock_heap();
// Between recordings of samples: small blocks come from the heap, and nothing is sampled. For whoever puts hooks over
// it. They do not where interpreters run at once, nor where other hooks are in place.
void start_heap(AllocatorTable& table, Interpreters interpreters);
// Also takes out what an earlier recording has left, if nothing lies over it any more.
void stop_heap();
// Whether an allocator of the table is that heap, not locked.
[[nodiscard]] bool is_heap(Domain domain, const Allocator& allocator);
// The number of the living block of this recording at this address; nothing if it is no sample. Needs the GIL, and also
// answers in the child of a fork.
[[nodiscard]] std::optional<std::uint64_t> sample_at(const void* block);
// The pages of that heap, also when nothing is recorded any more, as blocks of it may live. Needs the GIL, and also
// answers in the child of a fork.
[[nodiscard]] std::vector<HeapPage> heap_pages();
// While paused, allocations are neither sampled nor counted (but for 64 KiB at most of each other thread); frees are.
// Need the GIL.
void pause_sampling();
void resume_sampling();

// The process is about to have a limit of addresses (RLIMIT_AS), against which what is reserved counts, and of which
// most should be left to the program; but not if it is above all that there is, as one that the program has made of
// that: it would have what is given back beside what it meant to have. Needs the GIL.
void prepare_for_address_limit(std::uint64_t bytes);

// ---- for tests ----
[[nodiscard]] std::size_t living_samples();
// As if there never had been a recording. No block of ours may be alive, and no hook in place.
void forget_hooks();

}  // namespace plimsoll::alloc
