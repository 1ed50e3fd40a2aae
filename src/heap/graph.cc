#include "heap/graph.h"

#include <numeric>

namespace plimsoll::heap {

namespace {

// Where the edges to each node stand if they are put in order of what they lead to. put(place, holder, edge) is called
// for each of them.
template <typename Put>
std::vector<std::uint32_t> by_target(const Graph& graph, Put put) {
  // Counted two places on, summed, and filled one place on: so that the starts are right when all is filled.
  std::vector<std::uint32_t> first(graph.size() + 2, 0);
  for (const Node target : graph.targets) ++first[target + 2];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::uint32_t edge = 0;
  for (Node node = 0; node < graph.size(); ++node)
    for (const Node target : graph.from(node)) put(first[target + 1]++, node, edge++);
  first.pop_back();
  return first;
}

}  // namespace

Graph reversed(const Graph& graph) {
  Graph result;
  result.targets.resize(graph.targets.size());
  result.first =
      by_target(graph, [&](std::uint32_t place, Node holder, std::uint32_t) { result.targets[place] = holder; });
  return result;
}

IncomingEdges incoming_edges(const Graph& graph) {
  IncomingEdges result;
  result.edges.resize(graph.targets.size());
  result.first = by_target(graph, [&](std::uint32_t place, Node, std::uint32_t edge) { result.edges[place] = edge; });
  return result;
}

}  // namespace plimsoll::heap
