#include "heap/class_pattern.h"

#include <fnmatch.h>

#include <algorithm>

namespace plimsoll::heap {

bool matches_pattern(const std::string& name, const std::string& pattern) {
  return ::fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

ClassTree::ClassTree(const Snapshot& snapshot) : snapshot_(snapshot), bases_(snapshot.types.size()) {
  for (std::uint32_t type = 0; type < snapshot.types.size(); ++type) {
    const Node node = snapshot.types[type].object;
    if (node == kNoNode) continue;
    // By their texts: a base class without objects of its own is no type of the snapshot.
    const auto add = [&](Node base) {
      if (const std::string_view name = snapshot.text(base); !name.empty()) bases_[type].emplace_back(name);
    };
    for (std::uint32_t edge = snapshot.graph.first[node]; edge < snapshot.graph.first[node + 1]; ++edge) {
      const Node held = snapshot.graph.targets[edge];
      // Its __mro__ and __bases__; in a view they may be parts of it.
      if (snapshot.kind[edge] == EdgeKind::kElement) add(held);
      if (snapshot.type_name(held) == "tuple")
        for (const Node element : snapshot.graph.from(held)) add(element);
      if (snapshot.kind[edge] == EdgeKind::kNamed && snapshot.names[snapshot.name[edge]] == "__base__") add(held);
    }
  }
}

bool ClassTree::matches(std::uint32_t type, const std::string& pattern) const {
  const auto has_name = [&](const std::string& name) { return matches_pattern(name, pattern); };
  return has_name(snapshot_.types[type].name) || std::any_of(bases_[type].begin(), bases_[type].end(), has_name);
}

}  // namespace plimsoll::heap
