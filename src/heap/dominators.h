// heap/dominators.h: what would be freed with an object: the dominator tree and the sizes it retains.
#pragma once

#include <cstdint>
#include <vector>

#include "heap/graph.h"
#include "heap/wide_column.h"

namespace plimsoll::heap {

// Object d dominates object o if every path from the root to o goes through d: without d, o would be garbage. The
// nearest such d is o's parent in the tree.
struct DominatorTree {
  std::vector<Node> parent;  // by node; kNoNode for the root and for what it does not reach
  std::vector<Node> order;   // what the root reaches, parents before children; order[0] is the root
};

// Semi-NCA (Georgiadis, 2005): the semidominators of Lengauer and Tarjan, then the nearest common ancestor of each
// with the tree built so far. Nearly linear in practice, and without recursion: a linked list of millions is one path.
DominatorTree dominator_tree(const Graph& graph, Node root);

// The tree with edges from each dominator to what it dominates directly.
Graph tree_edges(const DominatorTree& tree);

// For each node, its own size and that of all it dominates; 0 for what the root does not reach.
std::vector<std::uint64_t> retained_sizes(const DominatorTree& tree, const WideColumn& sizes);

}  // namespace plimsoll::heap
