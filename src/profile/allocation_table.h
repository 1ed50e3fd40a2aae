// profile/allocation_table.h: the sampled allocations, and what became of them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace plimsoll::profile {

// One sampled block. Blocks were sampled at random: one had the chance 1 - e^(-chance_bytes / distance), where the
// distance is Profile::allocation_distance, and stands for 1 / chance blocks like it.
struct AllocationRow {
  static constexpr std::int64_t kAlive = -1;  // as freed_ns: it was not freed while recorded

  std::uint64_t number = 0;  // of the sample; unique
  std::int64_t time_ns = 0;  // monotonic, since the start of the profile
  ThreadId thread;
  StackId stack;           // none = the empty stack
  std::uint64_t size = 0;  // bytes asked for
  std::uint64_t chance_bytes = 0;
  std::uint8_t domain = 0;  // capture::AllocationDomain
  std::int64_t freed_ns = kAlive;
  StringId type;  // of the object; none = not known, or not an object
  TagSetId tags;  // none = no tags
  bool operator==(const AllocationRow&) const = default;
};

// In the order of recording.
using AllocationTable = std::vector<AllocationRow>;

// What became known of a row after it was written: it was freed, or its type.
struct Release {
  std::uint64_t number = 0;
  std::int64_t freed_ns = AllocationRow::kAlive;
  StringId type;
};

}  // namespace plimsoll::profile
