// alloc/native_sampling.h: samples what is allocated without the GIL: by Python's raw allocator, and by malloc and its
// kin, called by any thread of any module.
//
// Blocks come from whoever gave them out before; only samples are looked up when they are freed, and a filter keeps
// nearly all others from that. A block of the mean distance or more is always a sample, and stands for itself.
#pragma once

#include <cstdint>

#include "alloc/allocator_table.h"
#include "alloc/imports.h"
#include "alloc/malloc_family.h"
#include "alloc/sampled_blocks.h"
#include "base/result.h"

namespace plimsoll::alloc {

// Who is told of the samples, in the thread that allocates or frees, any of them, several at a time. What it allocates
// is not sampled.
class NativeTaker {
 public:
  virtual std::uint64_t next_number() = 0;
  // False if the sample is lost: then nothing more is told of it.
  virtual bool allocated(const SampledBlock& block, std::uint64_t chance_bytes) = 0;
  virtual void ended(const SampledBlock& block) = 0;

 protected:
  ~NativeTaker() = default;
};

// What is sampled.
enum class NativeScope : std::uint8_t {
  kRaw,         // Python's raw allocator
  kEverything,  // and malloc and its kin
};

// The caller serialises these, and has the GIL. One recording at a time; the taker must outlive it, the table the
// process.
Status start_native_sampling(NativeTaker& taker, AllocatorTable& table, std::uint64_t mean_bytes, NativeScope scope);
void stop_native_sampling();
// In the child of a fork: tells nothing.
void abandon_native_sampling();
void pause_native_sampling();
void resume_native_sampling();

// ---- for tests ----
[[nodiscard]] std::size_t living_native_samples();

}  // namespace plimsoll::alloc
