#include "heap/fold.h"

#include <numeric>

namespace plimsoll::heap {
namespace {

std::vector<Node> find_owners(const Snapshot& snapshot) {
  std::vector<bool> is_part_name(snapshot.names.size());
  for (std::size_t i = 0; i < snapshot.names.size(); ++i) is_part_name[i] = snapshot.names[i] == "__dict__";
  std::vector<Node> owner(snapshot.type.size());
  std::iota(owner.begin(), owner.end(), Node{0});
  std::vector<bool> has_parts(snapshot.type.size(), false);
  for (Node node = 0; node < snapshot.object_count; ++node)
    for (std::uint32_t edge = snapshot.graph.first[node]; edge < snapshot.graph.first[node + 1]; ++edge) {
      const Node part = snapshot.graph.targets[edge];
      const bool is_part = snapshot.kind[edge] == EdgeKind::kNamed && is_part_name[snapshot.name[edge]];
      // No part of a part, and nobody who has parts: so that an owner is never folded itself.
      const bool is_free = owner[part] == part && owner[node] == node && !has_parts[part] && part != node;
      if (is_part && is_free && snapshot.is_object(part) && snapshot.type_name(part) == "dict") {
        owner[part] = node;
        has_parts[node] = true;
      }
    }
  return owner;
}

}  // namespace

Folded fold(const Snapshot& snapshot) {
  Folded result;
  result.owner = find_owners(snapshot);
  const std::size_t count = snapshot.type.size();
  result.size.assign(count, 0);
  std::vector<std::uint32_t> degree(count + 1, 0);
  const auto each_edge = [&](auto visit) {
    for (Node node = 0; node < count; ++node)
      for (const Node target : snapshot.graph.from(node))
        if (result.owner[node] != result.owner[target]) visit(result.owner[node], result.owner[target]);
  };
  each_edge([&](Node from, Node) { ++degree[from + 1]; });
  std::partial_sum(degree.begin(), degree.end(), degree.begin());
  result.graph.first = degree;
  result.graph.targets.resize(degree.back());
  each_edge([&](Node from, Node to) { result.graph.targets[degree[from]++] = to; });
  for (Node node = 0; node < count; ++node) result.size[result.owner[node]] += snapshot.size[node];
  return result;
}

}  // namespace plimsoll::heap
