// heap/paths_test.cc: shortest paths through drawn graphs.
#include "heap/paths.h"

#include <gtest/gtest.h>

#include "heap/testing.h"

namespace plimsoll::heap {
namespace {

using testing::draw;
using testing::Drawing;

// "root a; root b c": the holders on each path.
std::string paths_of(const Drawing& drawing, const std::string& name, std::size_t most = 10) {
  std::string out;
  for (const auto& path : paths_to(drawing.graph, drawing["root"], drawing[name], most)) {
    out += out.empty() ? "" : "; ";
    for (const Step& step : path) {
      if (&step != path.data()) out += " ";
      out += drawing.name(step.node);
    }
    EXPECT_EQ(drawing.graph.targets[path.back().edge], drawing[name]);
  }
  return out;
}

TEST(Paths, TheShortestComesFirstAndOneIsShownForEachHolder) {
  const Drawing drawing = draw("root -> a b\n a -> c\n b -> x x\n c -> x");
  EXPECT_EQ(paths_of(drawing, "x"), "root b; root a c");
  EXPECT_EQ(paths_of(drawing, "x", 1), "root b");
}

TEST(Paths, DoNotLeadThroughTheObjectItself) { EXPECT_EQ(paths_of(draw("root -> x\n x -> y\n y -> x"), "x"), "root"); }

TEST(Paths, ToGarbageAndToTheRootThereAreNone) {
  const Drawing drawing = draw("root -> a\n a -> root\n dead -> a");
  EXPECT_EQ(paths_of(drawing, "dead"), "");
  EXPECT_EQ(paths_of(drawing, "root"), "");
}

TEST(Paths, ThroughAChainOfAMillion) {
  std::vector<std::vector<Node>> edges(1'000'000);
  for (Node i = 0; i + 1 < edges.size(); ++i) edges[i] = {i + 1};
  const auto paths = paths_to(testing::graph_of(edges), 0, 999'999, 3);
  ASSERT_EQ(paths.size(), 1U);
  EXPECT_EQ(paths[0].size(), 999'999U);
}

TEST(Graph, TurnedRoundTwiceIsItself) {
  const Drawing drawing = draw("root -> a b b\n a -> root\n b -> a");
  const Graph back = reversed(drawing.graph);
  EXPECT_EQ(back.from(drawing["b"]).size(), 2U);
  EXPECT_EQ(back.from(drawing["a"]).size(), 2U);
  const Graph again = reversed(back);
  EXPECT_EQ(again.first, drawing.graph.first);
}

TEST(HeapPaths, OfLongOnesTheEndsAreShown) {
  const auto shown = [](std::size_t steps) {
    std::vector<std::size_t> numbers;
    std::size_t left_out = 0;
    each_shown_step(
        steps, [&](std::size_t i) { numbers.push_back(i); }, [&](std::size_t count) { left_out = count; });
    return std::pair(numbers, left_out);
  };
  EXPECT_EQ(shown(40).first.size(), 40U);
  EXPECT_EQ(shown(40).second, 0U);
  EXPECT_EQ(shown(100'000).second, 99'960U);
  EXPECT_EQ(shown(100'000).first.size(), 40U);
  EXPECT_EQ(shown(100'000).first[19], 19U);
  EXPECT_EQ(shown(100'000).first[20], 99'980U);
}

}  // namespace
}  // namespace plimsoll::heap
