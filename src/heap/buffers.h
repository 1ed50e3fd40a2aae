// heap/buffers.h: memory outside Python that objects own, where it is known at which address: every byte of it once.
#pragma once

#include <cstdint>
#include <vector>

#include "heap/snapshot.h"

namespace plimsoll::heap {

// A stretch of memory. Several objects may own it, and others may lie in it.
struct Extent {
  std::uint64_t start = 0, end = 0;
  std::uint64_t own = 0;  // bytes of it that are in no other that begins later, or at the same place and is shorter
};

// What several objects say of the same memory is one extent.
struct Extents {
  std::vector<Extent> all;        // by start; of those with the same start the longest first
  std::vector<std::uint32_t> of;  // by Snapshot::buffers: index into `all`
  std::vector<std::uint64_t> in;  // by Snapshot::regions: bytes of extents in it, each byte once
};
Extents extents_of(const Snapshot& snapshot);

}  // namespace plimsoll::heap
