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

IncomingEdges incoming_edges(const Graph& graph) {
  IncomingEdges result;
  result.first.assign(graph.size() + 1, 0);
  for (const Node target : graph.targets) ++result.first[target + 1];
  std::partial_sum(result.first.begin(), result.first.end(), result.first.begin());
  result.edges.resize(graph.targets.size());
  std::vector<std::uint32_t> next(result.first.begin(), result.first.end() - 1);
  for (std::uint32_t edge = 0; edge < graph.targets.size(); ++edge) result.edges[next[graph.targets[edge]]++] = edge;
  return result;
}

}  // namespace plimsoll::heap
