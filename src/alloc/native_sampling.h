// alloc/native_sampling.h: samples what is allocated without the GIL: by Python's raw allocator, by malloc and its kin,
// called by any thread of any module; and, in builds that have no GIL, by all of Python's allocators.
//
// Blocks come from whoever gave them out before: the collector of a free-threaded build finds its objects where it
// expects them. Only samples are looked up when they are freed, and a filter keeps nearly all others from that. A block
// of the mean distance or more is always a sample, and stands for itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "alloc/allocator_table.h"
#include "alloc/imports.h"
#include "alloc/malloc_family.h"
#include "alloc/sampled_blocks.h"
#include "alloc/sampling_hooks.h"
#include "base/result.h"

namespace plimsoll::alloc {

// What is sampled, besides Python's raw allocator.
struct NativeScope {
  bool has_all_domains = false;  // those of objects and of memory
  bool has_malloc = false;       // malloc and its kin
};

// The caller serialises these, and is attached to the interpreter. One recording at a time; the taker must outlive it,
// the table the process. The taker is told in the thread that allocates or frees, any of them, several at a time, with
// no lock held; what it allocates is not sampled. Of the blocks of objects and of memory it is told how many bytes were
// given out.
Status start_native_sampling(SampleTaker& taker, AllocatorTable& table, std::uint64_t mean_bytes, NativeScope scope);
// Tells the end (kOfTime) of the samples that are alive, and nothing from then on.
Stopped stop_native_sampling();
// In the child of a fork: tells nothing.
void abandon_native_sampling();
void pause_native_sampling();
void resume_native_sampling();
// The number of the living block of this recording at this address; nothing if it is no sample. Also answers in the
// child of a fork.
[[nodiscard]] std::optional<std::uint64_t> native_sample_at(const void* block);

// ---- for tests ----
[[nodiscard]] std::size_t living_native_samples();

}  // namespace plimsoll::alloc
