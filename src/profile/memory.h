// profile/memory.h: sampled allocations -> bytes, with the uncertainty that sampling leaves.
//
// A sampled block stands for 1 / chance blocks like it. Sums of that are unbiased; their variance is estimated from the
// same samples (Horvitz-Thompson). Intervals are those of a Poisson count of as many samples as the sum is worth, so
// that they hold for few samples, too.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/profile.h"

namespace plimsoll::profile {

// Which allocations are looked at.
enum class MemoryView : std::uint8_t {
  kAllocated,  // all of them, freed since or not
  kLive,       // those that were never freed
  kPeak,       // those that were alive when most was
};

// From where to where the true value lies with 95 % confidence.
struct Interval {
  double low = 0;
  double high = 0;
};

// A sum over sampled blocks, as an estimate for all blocks.
struct MemoryEstimate {
  double bytes = 0;
  double blocks = 0;
  double variance = 0;  // of bytes
  std::uint64_t samples = 0;

  void add(const AllocationRow& row, std::uint64_t distance);
  void add(const MemoryEstimate& other);
  [[nodiscard]] Interval interval() const;
};

// One function, or with a line, one line of one; a sample counts once for each function on its stack.
struct MemoryRow {
  FunctionId function;
  MemoryEstimate self;   // allocated there
  MemoryEstimate total;  // and by what it called
};

// What a view of a profile comes to.
struct MemoryReport {
  MemoryEstimate all;
  std::int64_t at_ns = 0;             // the time that it is of: of the peak, else the end
  std::vector<MemoryRow> flat;        // by own bytes, most first
  std::vector<MemoryEstimate> stack;  // by StackId, of that very stack
  MemoryEstimate no_stack;
};

// The allocations of a view, oldest first: indices into profile.allocations.
std::vector<std::size_t> allocations_of(const Profile& profile, MemoryView view);
// When the estimate of living bytes was highest; 0 without allocations.
std::int64_t peak_time_ns(const Profile& profile);
MemoryReport memory_report(const Profile& profile, MemoryView view);

// What a sample stands for, in the place of nanoseconds: bytes, or how sure they are (see margin_of).
enum class MemoryWeight : std::uint8_t { kBytes, kVariance };

// Puts the allocations of a view in the place of the samples, so that what works on samples (trees, formats) works on
// them.
void put_memory_in_place_of_samples(Profile& profile, MemoryView view, MemoryWeight weight);
// Half the width of the interval of a sum of such samples, in parts of the sum, from its bytes and its kVariance.
double margin_of(const Profile& profile, std::int64_t bytes, std::int64_t variance);

}  // namespace plimsoll::profile
