#include "heap/paths.h"

#include <algorithm>

namespace plimsoll::heap {
namespace {

// The shortest way to every node without passing through `avoided`; an empty step where there is none.
std::vector<Step> breadth_first(const Graph& graph, Node root, Node avoided, std::vector<Step>& entries,
                                std::size_t most) {
  std::vector<Step> came_from(graph.size());
  std::vector<Node> queue{root};
  came_from[root] = {root, 0};
  for (std::size_t next = 0; next < queue.size() && entries.size() < most; ++next) {
    const Node node = queue[next];
    for (std::uint32_t edge = graph.first[node]; edge < graph.first[node + 1]; ++edge) {
      const Node target = graph.targets[edge];
      if (target == avoided) {
        if (entries.empty() || entries.back().node != node) entries.push_back({node, edge});
      } else if (came_from[target].node == kNoNode) {
        came_from[target] = {node, edge};
        queue.push_back(target);
      }
    }
  }
  if (entries.size() > most) entries.resize(most);
  return came_from;
}

}  // namespace

std::vector<std::vector<Step>> paths_to(const Graph& graph, Node root, Node node, std::size_t most) {
  if (node == root) return {};
  std::vector<Step> entries;  // the last step of each path, nearest holders first
  const std::vector<Step> came_from = breadth_first(graph, root, node, entries, most);
  std::vector<std::vector<Step>> paths;
  for (const Step& entry : entries) {
    std::vector<Step> path{entry};
    while (path.back().node != root) path.push_back(came_from[path.back().node]);
    std::reverse(path.begin(), path.end());
    paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace plimsoll::heap
