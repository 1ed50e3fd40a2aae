// capture/raw_allocation.h: sampled allocations on their way through the ring, after a RawSample whose `kind` says so.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/exact_row.h"
#include "base/ids.h"
#include "capture/raw_sample.h"

namespace plimsoll::capture {

using plimsoll::AllocationDomain;
using plimsoll::ExactChange;

// A block that was sampled; then come the frames.
struct RawAllocation {
  std::uint64_t number = 0;        // of the sample, in the order of taking; never used again in a recording
  std::uint64_t size = 0;          // as requested
  std::uint64_t chance_bytes = 0;  // the size that its chance of being sampled comes from: size, or that of its class
  AllocationDomain domain{};
  std::uint8_t reserved[7] = {};
};
static_assert(sizeof(RawAllocation) == 32);

// What became known of a sampled block later: that it was freed, or its type, or both.
struct RawRelease {
  static constexpr std::size_t kLongestType = 125;
  std::uint64_t number = 0;
  std::uint8_t is_freed = 0;
  std::uint8_t is_moved = 0;     // it was freed by realloc: what was in it lives on in another
  std::uint8_t type_length = 0;  // 0: the type is not known
  char type[kLongestType] = {};
  [[nodiscard]] std::string_view type_name() const { return {type, type_length}; }
};
static_assert(sizeof(RawRelease) == 136);

// An allocation with names and lines, root first. `frames` is valid during the call that passes it only.
struct Allocation {
  Sample sample;  // its weight is 0: it is not time
  RawAllocation block;
};

// A stack of an exact recording: a frame on top of another stack, or where stacks begin.
struct ExactStack {
  // What it is.
  enum class Kind : std::uint8_t {
    kFrame,
    kHidden,     // a frame that is not to be shown
    kNoPython,   // a thread's, which runs no Python code at the moment
    kNative,     // a thread's that Python does not know
    kTruncated,  // outer frames are missing
  };
  std::uint32_t number = 0;  // never another's in a recording
  std::uint32_t below = 0;   // the number of the other stack
  Kind kind{};
  SampleFrame frame;
};

// Blocks of one stack, counted: not sampled.
struct ExactAllocation {
  std::uint32_t stack = 0;  // ExactStack::number
  ThreadSerial thread;
  ExactChange change{};
  AllocationDomain domain{};
  std::int64_t born_ns = 0;  // CLOCK_MONOTONIC; the end of the epoch that they were allocated in; the time of the peak
  std::int64_t at_ns = 0;    // the end of the epoch that this happened in
  std::int64_t blocks = 0;
  std::int64_t bytes = 0;
  std::string_view type;
};

// Where blocks come from that a log of events tells of by a number.
struct AllocationSite {
  std::uint32_t stack = 0;  // as above; 0 = none
  ThreadSerial thread;
  AllocationDomain domain{};
  std::uint32_t size = 0;  // of each block; 0: of many sizes
};

}  // namespace plimsoll::capture
