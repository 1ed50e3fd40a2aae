// heap/paths.h: why an object is alive: the shortest way to it from the root.
#pragma once

#include <cstddef>
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

// How a path is shown: of a long one, like that to the end of a linked list, the first steps and the last ones, and how
// many are left out between. Calls show(number of a step), and leave_out(how many) where that is.
template <typename Show, typename LeaveOut>
void each_shown_step(std::size_t steps, Show show, LeaveOut leave_out) {
  constexpr std::size_t kAtAnEnd = 20;
  const bool is_long = steps > 2 * kAtAnEnd;
  for (std::size_t i = 0; i < (is_long ? kAtAnEnd : steps); ++i) show(i);
  if (!is_long) return;
  leave_out(steps - 2 * kAtAnEnd);
  for (std::size_t i = steps - kAtAnEnd; i < steps; ++i) show(i);
}

}  // namespace plimsoll::heap
