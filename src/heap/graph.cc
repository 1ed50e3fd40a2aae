#include "heap/graph.h"

#include <numeric>

namespace plimsoll::heap {

Graph reversed(const Graph& graph) {
  Graph result;
  result.first.assign(graph.size() + 2, 0);
  // Counted two places on, summed, and filled one place on: so that the starts are right when all is filled.
  for (const Node target : graph.targets) ++result.first[target + 2];
  std::partial_sum(result.first.begin(), result.first.end(), result.first.begin());
  result.targets.resize(graph.targets.size());
  for (Node node = 0; node < graph.size(); ++node)
    for (const Node target : graph.from(node)) result.targets[result.first[target + 1]++] = node;
  result.first.pop_back();
  return result;
}

}  // namespace plimsoll::heap
