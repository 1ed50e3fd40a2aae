// heap/places.h: where objects are held, in words that many objects share: "app.Session.tags[]".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heap/snapshot.h"

namespace plimsoll::heap {

// A place is the way by which the shortest path from a root reaches an object, from the last holder on that is no
// built-in container: a class and an attribute, a module and a variable, a function's local variable; "[]" is an
// element or value of a container in between.
struct Places {
  std::vector<std::uint32_t> of;  // by node: index into names
  std::vector<std::string> names;
};
Places places(const Snapshot& snapshot);

// The same for objects by the classes of all that hold them: "dict, list, app.Session"; at most four are named.
Places referrer_classes(const Snapshot& snapshot, const Graph& holders);

}  // namespace plimsoll::heap
