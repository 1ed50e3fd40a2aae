#include "heap/survivors.h"

#include "heap/object_finder.h"

namespace plimsoll::heap {

std::vector<bool> survivors(const Snapshot& first, const Snapshot& second, const Snapshot& third) {
  std::vector<bool> result(third.type.size(), false);
  ObjectFinder in_first(first);
  ObjectFinder in_second(second);
  for (Node object = 0; object < third.object_count; ++object)
    result[object] = !in_first.has(third, object) && in_second.has(third, object);
  return result;
}

}  // namespace plimsoll::heap
