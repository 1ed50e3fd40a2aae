// heap/suspects.h: where memory piles up.
#pragma once

#include <cstdint>
#include <vector>

#include "heap/analysis.h"
#include "heap/snapshot.h"

namespace plimsoll::heap {

// An object, or all objects of a class, that retains a large part of the heap.
struct Suspect {
  Node node = kNoNode;         // where it piles up; kNoNode: in many objects of a class
  std::vector<Node> holders;   // from the outermost one down to `node`, each retaining little more than the next
  bool repeats = false;        // it goes on below `node`, through many objects of its class: a linked list
  std::uint32_t type = 0;      // of the node, or of the many objects
  std::uint64_t count = 0;     // of the many objects; 1
  std::uint64_t retained = 0;  // bytes
  // What makes up most of it: the class of the objects directly below that retain most together.
  std::uint32_t piled_type = 0;
  std::uint64_t piled_count = 0, piled_retained = 0;
};

// After Eclipse's Memory Analyzer: single objects that retain at least `least_share` of all (0.1 is a tenth), and
// classes whose objects do so together and are not below one of these. The largest first. From a single object one goes
// down as long as one object below retains nearly as much, and half of what the first one does, and such a share; where
// that ends, memory piles up. Of many objects of one class that hold one another it is the first. The snapshot should
// be one of parts (heap/views.h).
std::vector<Suspect> suspects(const Snapshot& snapshot, const Dominance& dominance, double least_share);

}  // namespace plimsoll::heap
