#include "heap/survivors.h"

#include "heap/object_finder.h"

namespace plimsoll::heap {

NodeSet survivors(const Snapshot& first, const Snapshot& second, const Snapshot& third) {
  NodeSet result(third.object_count);
  ObjectFinder in_first(first);
  ObjectFinder in_second(second);
  for (Node object = 0; object < third.object_count; ++object)
    if (!in_first.has(third, object) && in_second.has(third, object)) result.insert(object);
  return result;
}

}  // namespace plimsoll::heap
