#include "heap/dominators.h"

#include <utility>

#include "base/long_array.h"

namespace plimsoll::heap {
namespace {

// Nodes are renamed to their place in a depth-first order: then "earlier" is "smaller", and the arrays below are walked
// through in nearly the order in which they lie in memory. The graph itself is in the order of addresses, which in a
// heap that is old is none: so each of its edges is looked at once, and what will be looked at next is fetched.
//
// Half of a heap's objects hold nothing and are held once: numbers, texts. Whoever holds such a leaf dominates it, and
// it dominates nobody; leaves have no places.
class SemiNca {
 public:
  SemiNca(const Graph& graph, Node root) : graph_(graph) {
    find_leaves();
    search(root);
    collect_predecessors();
  }

  DominatorTree run() {
    find_semidominators();
    find_dominators();
    return finish();
  }

 private:
  // In the place of a place, of what has not been met.
  static constexpr Node kUnseen = kNoNode, kUnseenLeaf = kNoNode - 1;

  // Arrays are filled here only: their whole length is known, or at most that of the graph.
  using Places = LongArray<Node>;
  static Places with_room(std::size_t count) {
    Places array;
    array.reserve(count);
    return array;
  }

  void find_leaves() {
    std::vector<bool> is_held(graph_.size(), false);
    std::vector<bool> is_shared(graph_.size(), false);  // what more than one edge leads to
    for (const Node target : graph_.targets) {
      if (is_held[target]) is_shared[target] = true;
      is_held[target] = true;
    }
    is_leaf_.resize(graph_.size());
    place_.resize(graph_.size());
    for (Node node = 0; node < graph_.size(); ++node) {
      is_leaf_[node] = graph_.first[node] == graph_.first[node + 1] && !is_shared[node];
      place_[node] = is_leaf_[node] ? kUnseenLeaf : kUnseen;
    }
  }

  void search(Node root) {
    order_.reserve(graph_.size());
    parent_ = with_room(graph_.size());
    edges_.reserve(graph_.targets.size());
    is_leaf_[root] = false;
    enter(root, 0);
    while (!open_.empty()) {
      Open& last = open_.back();
      if (last.edge == last.end) {
        open_.pop_back();
        continue;
      }
      fetch_target(last.edge + kAhead, last.end);
      fetch_edges(last.edge + 2, last.end);
      const Node target = graph_.targets[last.edge++];
      const Node to = place_[target];
      if (to == kUnseenLeaf)
        place_[target] = last.node;  // which is its dominator: nobody else asks for it
      else if (to == kUnseen)
        enter(target, last.place);
      else if (to != 0 && parent_[to] != last.place)
        edges_.push_back({last.place, to});
    }
    open_ = std::vector<Open>();
  }
  void enter(Node node, Node parent) {
    const auto place = static_cast<Node>(parent_.size());
    place_[node] = place;
    order_.push_back(node);
    parent_.push_back(parent);
    open_.push_back({node, place, graph_.first[node], graph_.first[node + 1]});
    for (std::uint32_t i = 0; i < kAhead; ++i) fetch_target(open_.back().edge + i, open_.back().end);
  }
  // What will be asked of where an edge leads to; and then where that leads to. Of edges before `end`. (If they were
  // not inlined at once, GCC 12 would find that they do nothing, and leave them out.)
  [[gnu::always_inline]] void fetch_target(std::uint32_t edge, std::uint32_t end) const {
    if (edge >= end) return;
    __builtin_prefetch(&place_[graph_.targets[edge]], 1);
    __builtin_prefetch(&graph_.first[graph_.targets[edge]]);
  }
  [[gnu::always_inline]] void fetch_edges(std::uint32_t edge, std::uint32_t end) const {
    if (edge >= end) return;
    const Node target = graph_.targets[edge];
    if (place_[target] == kUnseen) __builtin_prefetch(graph_.targets.data() + graph_.first[target]);
  }

  // By the place that they end at.
  void collect_predecessors() {
    first_ = Places(parent_.size() + 2, 0);
    for (const Edge& edge : edges_) ++first_[edge.to + 2];
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    predecessor_ = Places(first_.back(), 0);
    for (const Edge& edge : edges_) predecessor_[first_[edge.to + 1]++] = edge.from;
    first_.pop_back();
    edges_ = LongArray<Edge>();
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

  // From places to nodes. Leaves have their dominators already, and follow all others in the order.
  DominatorTree finish() {
    for (std::size_t place = 0; place < parent_.size(); ++place) {
      if (place + kAhead < parent_.size()) __builtin_prefetch(&place_[order_[place + kAhead]], 1);
      place_[order_[place]] = order_[parent_[place]];
    }
    place_[order_.front()] = kNoNode;
    for (Node node = 0; node < graph_.size(); ++node) {
      if (!is_leaf_[node]) continue;
      if (place_[node] == kUnseenLeaf)
        place_[node] = kNoNode;
      else
        order_.push_back(node);
    }
    return {std::move(place_), std::move(order_)};
  }

  // A node whose edges from `edge` on are still to be followed.
  struct Open {
    Node node, place;
    std::uint32_t edge, end;
  };
  // An edge, by the places of its ends.
  struct Edge {
    Node from, to;
  };
  static constexpr std::uint32_t kAhead = 8;  // so far ahead is fetched

  const Graph& graph_;
  std::vector<bool> is_leaf_;  // by node
  std::vector<Node> place_;    // likewise; of leaves their dominator
  std::vector<Node> order_;    // nodes, by place
  std::vector<Open> open_;     // from the root on
  LongArray<Edge> edges_;      // but those of the depth-first tree: `parent_` has them
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
  constexpr std::size_t kAhead = 16;  // so far ahead is fetched: the order may be none in memory
  std::vector<std::uint64_t> retained = sizes.values();
  if (tree.order.size() != retained.size())
    for (Node node = 0; node < retained.size(); ++node)
      if (tree.parent[node] == kNoNode && node != tree.order.front()) retained[node] = 0;
  for (std::size_t i = tree.order.size(); i-- > 1;) {
    if (i > 2 * kAhead) {
      __builtin_prefetch(&tree.parent[tree.order[i - 2 * kAhead]]);
      __builtin_prefetch(&retained[tree.order[i - 2 * kAhead]]);
      __builtin_prefetch(&retained[tree.parent[tree.order[i - kAhead]]], 1);
    }
    const Node node = tree.order[i];
    retained[tree.parent[node]] += retained[node];
  }
  return retained;
}

}  // namespace plimsoll::heap
