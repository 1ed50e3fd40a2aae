// heap/paths.h: why an object is alive: the shortest way to it from the root.
#pragma once

#include <vector>

#include "heap/graph.h"

namespace plimsoll::heap {

// One step of a path: a node, and which of its edges leads on (an index into Graph::targets).
struct Step {
  Node node = kNoNode;
  std::uint32_t edge = 0;
  bool operator==(const Step&) const = default;
};

// Up to `most` paths from `root` to `node`, the shortest first; no two enter `node` from the same holder, and each is
// the shortest by that holder. The steps begin at the root and end at the holder of `node`. Empty if there is none.
std::vector<std::vector<Step>> paths_to(const Graph& graph, Node root, Node node, std::size_t most);

}  // namespace plimsoll::heap
