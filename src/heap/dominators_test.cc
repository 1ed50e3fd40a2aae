// heap/dominators_test.cc: dominators of drawn graphs, and of random ones against the definition.
#include "heap/dominators.h"

#include <gtest/gtest.h>

#include <random>

#include "heap/testing.h"

namespace plimsoll::heap {
namespace {

using testing::draw;
using testing::Drawing;
using testing::graph_of;

// "a:root b:a", in the order of names; "-" for what has no dominator.
std::string tree_of(const Drawing& drawing) {
  const DominatorTree tree = dominator_tree(drawing.graph, drawing["root"]);
  std::string out;
  for (const auto& [name, node] : drawing.nodes)
    if (name != "root") out += (out.empty() ? "" : " ") + name + ":" + drawing.name(tree.parent[node]);
  return out;
}

std::vector<bool> reached(const Graph& graph, Node root, Node without) {
  std::vector<bool> seen(graph.size(), false);
  if (root == without) return seen;
  std::vector<Node> open{root};
  seen[root] = true;
  while (!open.empty()) {
    const Node node = open.back();
    open.pop_back();
    for (const Node target : graph.from(node))
      if (target != without && !seen[target]) {
        seen[target] = true;
        open.push_back(target);
      }
  }
  return seen;
}

// By the definition: what is not reached without a node is dominated by it. Retained sizes of all nodes.
std::vector<std::uint64_t> naive_retained(const Graph& graph, Node root, const std::vector<std::uint64_t>& sizes) {
  std::vector<std::uint64_t> retained(graph.size(), 0);
  const std::vector<bool> all = reached(graph, root, kNoNode);
  for (Node node = 0; node < graph.size(); ++node) {
    if (!all[node]) continue;
    const std::vector<bool> rest = reached(graph, root, node);
    for (Node other = 0; other < graph.size(); ++other)
      if (all[other] && !rest[other]) retained[node] += sizes[other];
  }
  return retained;
}

TEST(Dominators, OfATreeAreTheParents) { EXPECT_EQ(tree_of(draw("root -> a b\n a -> c")), "a:root b:root c:a"); }

TEST(Dominators, ASharedLeafBelongsToNoneOfItsHolders) {
  EXPECT_EQ(tree_of(draw("root -> a b\n a -> leaf\n b -> leaf")), "a:root b:root leaf:root");
}

TEST(Dominators, ADiamondBelongsToItsTop) {
  EXPECT_EQ(tree_of(draw("root -> top\n top -> left right\n left -> end\n right -> end\n end -> tail")),
            "end:top left:top right:top tail:end top:root");
}

TEST(Dominators, ACycleBelongsToWhereItIsEntered) {
  EXPECT_EQ(tree_of(draw("root -> a\n a -> b\n b -> c\n c -> a")), "a:root b:a c:b");
  EXPECT_EQ(tree_of(draw("root -> a b\n a -> b\n b -> a")), "a:root b:root") << "entered at two places";
}

TEST(Dominators, IgnoreLoopsAndDoubleEdges) { EXPECT_EQ(tree_of(draw("root -> a a root\n a -> a b b")), "a:root b:a"); }

TEST(Dominators, GarbageHasNone) {
  EXPECT_EQ(tree_of(draw("root -> a\n dead -> a dying\n dying -> dead")), "a:root dead:- dying:-");
}

// The example of Lengauer and Tarjan's paper (1979), with the answer that they print.
TEST(Dominators, OfTheExampleInThePaper) {
  EXPECT_EQ(tree_of(draw("root -> a b c\n a -> d\n b -> a d e\n c -> f g\n d -> l\n e -> h\n f -> i\n g -> i j\n"
                         "h -> e k\n i -> k\n j -> i\n k -> i root\n l -> h")),
            "a:root b:root c:root d:root e:root f:c g:c h:root i:root j:g k:root l:d");
}

TEST(Dominators, AChainOfAMillionIsOnePath) {
  constexpr Node kCount = 1'000'000;
  // GIVEN a linked list whose last element holds the first
  std::vector<std::vector<Node>> edges(kCount);
  for (Node i = 0; i < kCount; ++i) edges[i] = {(i + 1) % kCount};
  const Graph graph = graph_of(edges);
  // WHEN
  const DominatorTree tree = dominator_tree(graph, 0);
  const std::vector<std::uint64_t> retained = retained_sizes(tree, WideColumn(std::vector<std::uint64_t>(kCount, 16)));
  // THEN each element retains all after it
  EXPECT_EQ(retained[0], 16ULL * kCount);
  EXPECT_EQ(retained[kCount / 2], 8ULL * kCount);
  EXPECT_EQ(retained[kCount - 1], 16U);
}

TEST(Dominators, ALadderOfAMillionIsFlat) {
  constexpr Node kCount = 1'000'000;
  // GIVEN two lists that hold each other's next element, entered at both
  std::vector<std::vector<Node>> edges(kCount);
  edges[0] = {1, 2};
  for (Node i = 1; i + 3 < kCount; i += 2) edges[i] = edges[i + 1] = {i + 2, i + 3};
  // WHEN
  const DominatorTree tree = dominator_tree(graph_of(edges), 0);
  // THEN nothing but the root dominates anything
  for (Node i = 1; i + 1 < kCount; ++i) ASSERT_EQ(tree.parent[i], 0U) << i;
}

TEST(Dominators, OfRandomGraphsAreThoseOfTheDefinition) {
  std::mt19937 engine(1979);
  const auto random = [&] { return static_cast<Node>(engine()); };
  for (int round = 0; round < 400; ++round) {
    // GIVEN a graph of up to 40 nodes, sparse or dense
    const Node count = 1 + random() % 40;
    const unsigned degree = 1 + random() % 4;
    std::vector<std::vector<Node>> edges(count);
    std::vector<std::uint64_t> sizes(count);
    for (Node i = 0; i < count; ++i) {
      sizes[i] = 1 + random() % 100;
      for (unsigned k = random() % (degree + 1); k-- > 0;) edges[i].push_back(random() % count);
    }
    const Graph graph = graph_of(edges);
    const Node root = random() % count;
    // WHEN / THEN
    const std::vector<std::uint64_t> retained = retained_sizes(dominator_tree(graph, root), WideColumn(sizes));
    ASSERT_EQ(retained, naive_retained(graph, root, sizes)) << "round " << round;
  }
}

}  // namespace
}  // namespace plimsoll::heap
