#include "heap/class_pattern.h"

#include <fnmatch.h>

#include <algorithm>

namespace plimsoll::heap {

bool matches_pattern(const std::string& name, const std::string& pattern) {
  return ::fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

std::vector<std::vector<std::string>> base_names(const Snapshot& snapshot) {
  if (!snapshot.bases.empty()) return snapshot.bases;
  std::vector<std::vector<std::string>> bases(snapshot.types.size());
  for (std::uint32_t type = 0; type < snapshot.types.size(); ++type) {
    const Node node = snapshot.types[type].object;
    if (node == kNoNode) continue;
    // By their texts: a base class without objects of its own is no type of the snapshot.
    const auto add = [&](Node base) {
      if (const std::string_view name = snapshot.text(base); !name.empty()) bases[type].emplace_back(name);
    };
    for (std::uint32_t edge = snapshot.graph.first[node]; edge < snapshot.graph.first[node + 1]; ++edge) {
      if (snapshot.kind[edge] != EdgeKind::kNamed) continue;
      const Node held = snapshot.graph.targets[edge];
      const std::string& name = snapshot.names[snapshot.name[edge]];
      if (name == "__base__") add(held);
      if (name == "__mro__" || name == "__bases__")
        for (const Node element : snapshot.graph.from(held)) add(element);
    }
  }
  return bases;
}

ClassTree::ClassTree(const Snapshot& snapshot) : snapshot_(snapshot), bases_(base_names(snapshot)) {}

bool ClassTree::matches(std::uint32_t type, const std::string& pattern) const {
  const auto has_name = [&](const std::string& name) { return matches_pattern(name, pattern); };
  if (has_name(snapshot_.types[type].name)) return true;
  // (A view of memory has kinds of nodes more than what it was made of.)
  return type < bases_.size() && std::any_of(bases_[type].begin(), bases_[type].end(), has_name);
}

}  // namespace plimsoll::heap
