// heap/views.h: a snapshot in which several objects are one, so that everything that is asked of snapshots can be asked
// of it: its graph is the quotient of the graph below.
//
// Views stack, each on what the one before has made: raw, as objects are; parts, an object with what is its own inside
// (the dict of a module, class or instance; the code of a function); module, everything that a module's text makes
// (classes, functions, constants) in one node; and rules of the user's. One more adds nodes: memory, for what the
// process's memory is used for beside objects (memory_view.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "heap/quotient.h"
#include "heap/snapshot.h"

namespace plimsoll::heap {

// A rule: what objects of a class take into themselves.
struct FoldRule {
  std::string classes;             // a name or pattern ("app.Cache", "app.*"); subclasses are meant, too
  std::vector<std::string> parts;  // attributes; "*": all that only it keeps alive
};

// A stage of a view.
struct ViewStage {
  // What makes the groups.
  enum class Kind : std::uint8_t { kMemory, kParts, kModule, kRules };
  Kind kind = Kind::kParts;
  std::vector<FoldRule> rules;
};
using View = std::vector<ViewStage>;  // empty: raw

// As people write it: "raw", "memory" (below all others), "parts", "module" (on parts), or rules (on parts, or on
// `below`): lines or words between semicolons "CLASSES: PART, PART". kUsage if it is none of these.
Result<View> add_view(View below, std::string_view words);

// Objects with their parts: dicts that are held as __dict__, and what only a function or class holds of its own inside.
Grouping parts_of(const Snapshot& snapshot);
// Of a snapshot of parts: modules with their classes, functions, and the constants that only these hold.
Grouping modules_of(const Snapshot& snapshot);
Grouping ruled(const Snapshot& snapshot, const std::vector<FoldRule>& rules);

// The classes of a view's rules that no object of the snapshot is of: such rules do nothing.
std::vector<std::string> classes_not_there(const Snapshot& snapshot, const View& view);

// The stages, one after another.
Snapshot seen_as(Snapshot snapshot, const View& view);

}  // namespace plimsoll::heap
