// heap/quotient.h: a snapshot of groups of objects.
#pragma once

#include <vector>

#include "heap/snapshot.h"

namespace plimsoll::heap {

// By node: who it is folded into; itself, if it is not folded. Nobody is folded into a node that is folded itself, and
// only objects are folded.
using Grouping = std::vector<Node>;

// Sizes are summed up; references between members are gone; those to or from a member are its group's, and several of
// one group to another are one, but for elements of one member, keys and values. A folded object is found by its
// address in Snapshot::folded. Otherwise a group is what the node is that it was folded into.
Snapshot quotient(const Snapshot& snapshot, const Grouping& group);

}  // namespace plimsoll::heap
