// heap/duplicates.h: str and bytes that are there more than once.
#pragma once

#include <cstdint>
#include <vector>

#include "heap/places.h"

namespace plimsoll::heap {

// Objects of one class with equal contents.
struct Duplicate {
  std::uint32_t type = 0;
  std::uint64_t count = 0;
  std::uint64_t size = 0;   // bytes of all
  std::uint64_t waste = 0;  // of all but the largest
  Node first = kNoNode;     // the one at the lowest address
  std::uint32_t place = 0;  // where most of them are held: see Places
  std::uint64_t held_there = 0;
};

// All that there are, the most waste first. Contents are compared by their hashes; snapshots before format 1.1 have
// none.
std::vector<Duplicate> duplicates(const Snapshot& snapshot, const Places& places);

}  // namespace plimsoll::heap
