// heap/graph.h: a directed graph in two arrays, as all analyses want it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace plimsoll::heap {

// A node is its number. 32 bits: a heap of four thousand million objects is analysed by another program.
using Node = std::uint32_t;
inline constexpr Node kNoNode = std::numeric_limits<Node>::max();

// Edges of node n are targets[first[n]] to targets[first[n + 1] - 1], in the order in which the object holds them.
// first has one element more than there are nodes; every target is a node.
struct Graph {
  std::vector<std::uint32_t> first{0};
  std::vector<Node> targets;

  [[nodiscard]] std::size_t size() const { return first.size() - 1; }
  [[nodiscard]] std::span<const Node> from(Node node) const {
    return std::span(targets).subspan(first[node], first[node + 1] - first[node]);
  }
};

// The same nodes with every edge turned round.
Graph reversed(const Graph& graph);

// Edges (indices into Graph::targets) by the node that they lead to: those of node n are edges[first[n]] and on.
struct IncomingEdges {
  std::vector<std::uint32_t> first, edges;
};
IncomingEdges incoming_edges(const Graph& graph);

}  // namespace plimsoll::heap
