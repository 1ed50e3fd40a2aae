#include "heap/dominators.h"

#include <utility>

#include "base/long_array.h"

namespace plimsoll::heap {
namespace {

// Nodes are renamed to their place in a depth-first order: then "earlier" is "smaller", and the arrays below are walked
// through in nearly the order in which they lie in memory.
//
// Half of a heap's objects hold nothing and are held once: numbers, texts. Whoever holds such a leaf dominates it, and
// it dominates nobody; leaves have no places.
class SemiNca {
 public:
  SemiNca(const Graph& graph, Node root) : graph_(graph) {
    find_shared();
    search(root);
    collect_predecessors();
  }

  DominatorTree run() {
    find_semidominators();
    find_dominators();
    return finish();
  }

 private:
  static constexpr Node kLeaf = kNoNode - 1;  // in the place of a place

  // What more than one edge leads to.
  void find_shared() {
    std::vector<bool> is_held(graph_.size(), false);
    is_shared_.resize(graph_.size(), false);
    for (const Node target : graph_.targets) {
      if (is_held[target]) is_shared_[target] = true;
      is_held[target] = true;
    }
  }
  [[nodiscard]] bool is_leaf(Node node) const {
    return graph_.first[node] == graph_.first[node + 1] && !is_shared_[node];
  }

  void search(Node root) {
    const std::size_t count = graph_.size();
    place_ = Places(count, kNoNode);
    order_.reserve(count);
    parent_ = with_room(count);
    leaf_holder_ = with_room(count);
    is_leaf_.reserve(count);
    std::vector<std::pair<Node, std::uint32_t>> open;  // node, next edge
    const auto enter = [&](Node node, Node parent) {
      place_[node] = static_cast<Node>(parent_.size());
      order_.push_back(node);
      is_leaf_.push_back(false);
      parent_.push_back(parent);
      open.emplace_back(node, graph_.first[node]);
    };
    enter(root, 0);
    while (!open.empty()) {
      auto& [node, edge] = open.back();
      if (edge == graph_.first[node + 1]) {
        open.pop_back();
        continue;
      }
      const Node target = graph_.targets[edge++];
      if (place_[target] != kNoNode) continue;
      if (!is_leaf(target)) {
        enter(target, place_[node]);  // moves `open`: the references are not used after
        continue;
      }
      place_[target] = kLeaf;
      order_.push_back(target);
      is_leaf_.push_back(true);
      leaf_holder_.push_back(place_[node]);
    }
    is_shared_ = std::vector<bool>();
  }

  // The edges that end at each place, but those of the depth-first tree: `parent_` has them.
  void collect_predecessors() {
    first_ = Places(parent_.size() + 2, 0);
    const auto each = [&](auto visit) {
      Node place = 0;
      for (std::size_t i = 0; i < order_.size(); ++i) {
        if (is_leaf_[i]) continue;
        for (const Node target : graph_.from(order_[i])) {
          const Node to = place_[target];
          if (to != kLeaf && to != 0 && parent_[to] != place) visit(place, to);
        }
        ++place;
      }
    };
    each([&](Node, Node to) { ++first_[to + 2]; });
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    predecessor_ = Places(first_.back(), 0);
    each([&](Node place, Node to) { predecessor_[first_[to + 1]++] = place; });
    first_.pop_back();
    place_ = Places();
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

  // The semidominator of i goes where its predecessors ended, which nobody asks for any more.
  [[nodiscard]] Node& semidominator(Node i) { return first_[i + 1]; }

  void find_semidominators() {
    ancestor_ = parent_;
    label_ = Places(parent_.size(), 0);
    for (Node i = static_cast<Node>(parent_.size()); i-- > 1;) {
      const std::uint32_t end = first_[i + 1];
      Node smallest = parent_[i];
      for (std::uint32_t at = first_[i]; at < end; ++at) {
        const Node label = smallest_label(predecessor_[at], i + 1);
        if (label < smallest) smallest = label;
      }
      label_[i] = semidominator(i) = smallest;
    }
    ancestor_ = Places();
    label_ = Places();
    predecessor_ = Places();
  }

  // Makes the dominators out of the parents, in their place.
  void find_dominators() {
    for (Node i = 1; i < parent_.size(); ++i)
      while (parent_[i] > semidominator(i)) parent_[i] = parent_[parent_[i]];
    first_ = Places();
  }

  // From places to nodes.
  DominatorTree finish() {
    Places node_at = with_room(parent_.size());
    for (std::size_t i = 0; i < order_.size(); ++i)
      if (!is_leaf_[i]) node_at.push_back(order_[i]);
    DominatorTree tree;
    tree.parent.assign(graph_.size(), kNoNode);
    for (Node place = 1; place < node_at.size(); ++place) tree.parent[node_at[place]] = node_at[parent_[place]];
    auto holder = leaf_holder_.begin();
    for (std::size_t i = 0; i < order_.size(); ++i)
      if (is_leaf_[i]) tree.parent[order_[i]] = node_at[*holder++];
    tree.order = std::move(order_);
    return tree;
  }

  // Arrays are filled here only: their whole length is known, or at most that of the graph.
  using Places = LongArray<Node>;
  static Places with_room(std::size_t count) {
    Places array;
    array.reserve(count);
    return array;
  }

  const Graph& graph_;
  std::vector<bool> is_shared_;  // by node
  Places place_;                 // likewise
  std::vector<Node> order_;      // of all nodes, leaves among them
  std::vector<bool> is_leaf_;    // as order_
  Places leaf_holder_;           // of the leaves, in that order
  // All below by place. Predecessors of place i are predecessor_[first_[i]] to predecessor_[first_[i + 1] - 1].
  Places parent_, ancestor_, label_, first_, predecessor_;
  Places path_;
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

std::vector<std::uint64_t> retained_sizes(const DominatorTree& tree, const WideColumn& sizes) {
  std::vector<std::uint64_t> retained(sizes.size(), 0);
  for (std::size_t i = tree.order.size(); i-- > 0;) {
    const Node node = tree.order[i];
    retained[node] += sizes[node];
    if (i != 0) retained[tree.parent[node]] += retained[node];
  }
  return retained;
}

}  // namespace plimsoll::heap
