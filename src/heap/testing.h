// heap/testing.h: graphs drawn in text, for tests only. No product code may include it.
#pragma once

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "heap/graph.h"

namespace plimsoll::heap::testing {

// A graph, and the names of its nodes.
struct Drawing {
  Graph graph;
  std::map<std::string, Node> nodes;
  [[nodiscard]] Node operator[](const std::string& name) const { return nodes.at(name); }
  [[nodiscard]] std::string name(Node node) const {
    for (const auto& [name, number] : nodes)
      if (number == node) return name;
    return "-";
  }
};

inline Graph graph_of(const std::vector<std::vector<Node>>& edges) {
  Graph graph;
  for (const auto& targets : edges) {
    graph.targets.insert(graph.targets.end(), targets.begin(), targets.end());
    graph.first.push_back(static_cast<std::uint32_t>(graph.targets.size()));
  }
  return graph;
}

// One holder a line: "root -> a b". Nodes are numbered as they appear.
inline Drawing draw(const std::string& text) {
  Drawing drawing;
  std::vector<std::vector<Node>> edges;
  const auto node = [&](const std::string& name) {
    const auto [found, is_new] = drawing.nodes.try_emplace(name, static_cast<Node>(drawing.nodes.size()));
    if (is_new) edges.emplace_back();
    return found->second;
  };
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string holder;
    std::string arrow;
    if (!(words >> holder)) continue;
    const Node from = node(holder);
    words >> arrow;
    for (std::string held; words >> held;) {
      const Node to = node(held);
      edges[from].push_back(to);
    }
  }
  drawing.graph = graph_of(edges);
  return drawing;
}

}  // namespace plimsoll::heap::testing
