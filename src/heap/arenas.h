// heap/arenas.h: how full the arenas of Python's small-object allocator are, and what keeps the others from being given
// back to the system.
#pragma once

#include <cstdint>
#include <vector>

#include "heap/snapshot.h"

namespace plimsoll::heap {

// An arena: pools side by side. It goes back to the system when all its pools are empty.
struct Arena {
  std::uint64_t address = 0;
  std::uint64_t pools = 0, empty_pools = 0;
  std::uint64_t bytes = 0;         // of pools
  std::uint64_t used = 0;          // of blocks in use
  std::uint64_t objects = 0;       // that begin in it
  std::uint64_t other_blocks = 0;  // in use, but no objects of the snapshot: tables of dicts and lists, and others
  [[nodiscard]] double fill() const { return bytes == 0 ? 0 : static_cast<double>(used) / static_cast<double>(bytes); }
};

// By address; empty if the snapshot does not know pools.
std::vector<Arena> arenas(const Snapshot& snapshot);

// Objects of a class that lie in arenas that are nearly empty.
struct Pinning {
  std::uint32_t type = 0;
  std::uint64_t arenas = 0;   // such arenas in which there are objects of it
  std::uint64_t alone = 0;    // in which all objects are of it
  std::uint64_t objects = 0;  // of it in these
  std::uint64_t size = 0;     // bytes
};
// The classes whose objects keep arenas alive that are filled to at most `most_fill`; those in most arenas first.
std::vector<Pinning> pinning(const Snapshot& snapshot, const std::vector<Arena>& arenas, double most_fill);

// The object nodes that begin in [start, end).
std::pair<Node, Node> objects_between(const Snapshot& snapshot, std::uint64_t start, std::uint64_t end);

}  // namespace plimsoll::heap
