// heap/object_finder.h: whether an object of one snapshot is in another one of the same process.
#pragma once

#include "heap/snapshot.h"

namespace plimsoll::heap {

// Looks for objects in `snapshot`, which must outlive it. Objects must be asked for in the order of addresses, in which
// every snapshot has them: so all of one are found in a single pass over the other.
class ObjectFinder {
 public:
  explicit ObjectFinder(const Snapshot& snapshot) : snapshot_(snapshot) {}

  // Whether there is an object of the same class at the address of that one.
  bool has(const Snapshot& other, Node object) {
    while (at_ < snapshot_.object_count && snapshot_.address[at_] < other.address[object]) ++at_;
    return at_ < snapshot_.object_count && snapshot_.address[at_] == other.address[object] &&
           snapshot_.type_name(at_) == other.type_name(object);
  }

 private:
  const Snapshot& snapshot_;
  Node at_ = 0;
};

}  // namespace plimsoll::heap
