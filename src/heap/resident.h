// heap/resident.h: what the memory that a process has in use (RSS) is used for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heap/snapshot.h"

namespace plimsoll::heap {

// What a mapping is for, by what lies in it and by its name.
enum class RegionUse : std::uint8_t {
  kPools,   // small objects of Python
  kStack,   // of a thread
  kHeap,    // memory of the system's allocator, and other memory without a name
  kFile,    // the program, libraries, files that are mapped
  kSystem,  // of the kernel's
};
std::string_view use_name(RegionUse use);

// A mapping with what is known of it. Every byte belongs to the innermost that it lies in: `own` is what neither a pool
// nor an object that begins in it takes.
struct RegionFacts {
  RegionUse use{};
  std::uint64_t pool_bytes = 0;           // of pools in it
  std::uint64_t pool_used = 0;            // of these, in blocks that are given out
  std::uint64_t objects = 0;              // that begin in it
  std::uint64_t object_bytes = 0;         // of these, with what they own elsewhere
  std::uint64_t blocks_beside_pools = 0;  // where there are pools: of objects that do not begin in one
  std::uint64_t own = 0;                  // resident bytes beside pools and objects
};
// By region of the snapshot.
std::vector<RegionFacts> region_facts(const Snapshot& snapshot);
// How much of a region in memory can be buffers of objects: all but blocks of pools. What is free in these may never
// have been written to.
std::uint64_t room_for_buffers(const Region& region, const RegionFacts& facts);

// A part of RSS.
struct ResidentPart {
  std::string what;
  std::uint64_t bytes = 0;
};
// RSS, explained.
struct Resident {
  std::uint64_t total = 0;  // bytes
  std::vector<ResidentPart> parts;
  // Of bytes in blocks that the small-object allocator has given out, and those thereof that are objects'.
  std::uint64_t small_used = 0, small_explained = 0;
  std::uint64_t small_free = 0;  // bytes of pools that are in memory and that nobody uses
  std::uint64_t native = 0;      // of native code, or free in the system's allocator
};
// Without rows if the snapshot does not know what was mapped.
Resident resident(const Snapshot& snapshot);

}  // namespace plimsoll::heap
