// heap/fold.h: objects with their parts as one.
//
// The functions of a module hold the module's dict, not the module; so the dict belongs to nobody, and a tree of
// dominators shows a thousand nameless dicts. Folded, whoever holds the dict of a module, class or instance holds the
// whole of it.
#pragma once

#include <cstdint>
#include <vector>

#include "heap/dominators.h"
#include "heap/snapshot.h"

namespace plimsoll::heap {

// A graph with the nodes of the snapshot, in which parts have neither edges nor size: their owners have them.
struct Folded {
  Graph graph;
  std::vector<std::uint64_t> size;
  std::vector<Node> owner;  // by node: itself, if it is no part
};

// Folds every dict into the first object that holds it as its __dict__.
Folded fold(const Snapshot& snapshot);

}  // namespace plimsoll::heap
