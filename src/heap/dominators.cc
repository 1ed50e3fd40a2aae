#include "heap/dominators.h"

#include <utility>

namespace plimsoll::heap {
namespace {

// Nodes are renamed to their place in a depth-first order: then "earlier" is "smaller", and the arrays below are walked
// through in nearly the order in which they lie in memory.
class SemiNca {
 public:
  SemiNca(const Graph& graph, Node root) : graph_(graph), place_(graph.size(), kNoNode) {
    search(root);
    collect_predecessors();
  }

  DominatorTree run() {
    find_semidominators();
    find_dominators();
    DominatorTree tree;
    tree.parent.assign(graph_.size(), kNoNode);
    for (Node i = 1; i < order_.size(); ++i) tree.parent[order_[i]] = order_[dominator_[i]];
    tree.order = std::move(order_);
    return tree;
  }

 private:
  void search(Node root) {
    std::vector<std::pair<Node, std::uint32_t>> open;  // place, next edge
    const auto enter = [&](Node node, Node parent) {
      place_[node] = static_cast<Node>(order_.size());
      order_.push_back(node);
      parent_.push_back(parent);
      open.emplace_back(place_[node], graph_.first[node]);
    };
    enter(root, 0);
    while (!open.empty()) {
      auto& [place, edge] = open.back();
      if (edge == graph_.first[order_[place] + 1]) {
        open.pop_back();
        continue;
      }
      const Node target = graph_.targets[edge++];
      if (place_[target] == kNoNode) enter(target, place);  // moves `open`: the references are not used after
    }
  }

  // The edges that end at each place, but those of the depth-first tree: `parent_` has them.
  void collect_predecessors() {
    predecessors_.first.assign(order_.size() + 2, 0);
    const auto each = [&](auto visit) {
      for (Node place = 0; place < order_.size(); ++place)
        for (const Node target : graph_.from(order_[place]))
          if (const Node to = place_[target]; to != 0 && parent_[to] != place) visit(place, to);
    };
    each([&](Node, Node to) { ++predecessors_.first[to + 2]; });
    for (std::size_t i = 1; i < predecessors_.first.size(); ++i) predecessors_.first[i] += predecessors_.first[i - 1];
    predecessors_.targets.resize(predecessors_.first.back());
    each([&](Node place, Node to) { predecessors_.targets[predecessors_.first[to + 1]++] = place; });
    predecessors_.first.pop_back();
  }

  // The smallest label on the path from `node` to, but without, the root of its tree in the forest of places that are
  // done (those from `done` on); the path is made one step long on the way.
  Node smallest_label(Node node, Node done) {
    if (node < done) return node;
    Node at = node;
    for (; ancestor_[at] >= done; at = ancestor_[at]) path_.push_back(at);
    for (; !path_.empty(); path_.pop_back()) {
      const Node below = path_.back();
      const Node above = ancestor_[below];
      if (label_[above] < label_[below]) label_[below] = label_[above];
      ancestor_[below] = ancestor_[above];
    }
    return label_[node];
  }

  void find_semidominators() {
    ancestor_ = parent_;
    label_.resize(order_.size());
    semidominator_.resize(order_.size());
    for (Node i = static_cast<Node>(order_.size()); i-- > 1;) {
      Node smallest = parent_[i];
      for (const Node from : predecessors_.from(i)) {
        const Node label = smallest_label(from, i + 1);
        if (label < smallest) smallest = label;
      }
      label_[i] = semidominator_[i] = smallest;
    }
  }

  void find_dominators() {
    dominator_ = std::move(parent_);
    for (Node i = 1; i < order_.size(); ++i)
      while (dominator_[i] > semidominator_[i]) dominator_[i] = dominator_[dominator_[i]];
  }

  const Graph& graph_;
  std::vector<Node> place_;  // by node
  // All below by place.
  std::vector<Node> order_, parent_, ancestor_, label_, semidominator_, dominator_;
  Graph predecessors_;
  std::vector<Node> path_;
};

}  // namespace

DominatorTree dominator_tree(const Graph& graph, Node root) { return SemiNca(graph, root).run(); }

Graph tree_edges(const DominatorTree& tree) {
  Graph edges;
  edges.first.assign(tree.parent.size() + 2, 0);
  const auto each = [&](auto visit) {
    for (const Node node : tree.order)
      if (tree.parent[node] != kNoNode) visit(tree.parent[node], node);
  };
  each([&](Node parent, Node) { ++edges.first[parent + 2]; });
  for (std::size_t i = 1; i < edges.first.size(); ++i) edges.first[i] += edges.first[i - 1];
  edges.targets.resize(edges.first.back());
  each([&](Node parent, Node node) { edges.targets[edges.first[parent + 1]++] = node; });
  edges.first.pop_back();
  return edges;
}

std::vector<std::uint64_t> retained_sizes(const DominatorTree& tree, std::span<const std::uint64_t> sizes) {
  std::vector<std::uint64_t> retained(sizes.size(), 0);
  for (std::size_t i = tree.order.size(); i-- > 0;) {
    const Node node = tree.order[i];
    retained[node] += sizes[node];
    if (i != 0) retained[tree.parent[node]] += retained[node];
  }
  return retained;
}

}  // namespace plimsoll::heap
