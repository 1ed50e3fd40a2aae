// profile/tree_test.cc: aggregation of drawn profiles into call trees.
#include "profile/tree.h"

#include <gtest/gtest.h>

#include "profile/filter.h"
#include "profile/testing.h"

namespace plimsoll::profile {
namespace {

using testing::draw_profile;
using testing::kMillisecond;

// A tree as text, one node a line: indentation, name[:line], total/self milliseconds, samples through/at the node.
void print(const Profile& profile, const Tree& tree, std::size_t index, int depth, std::string& out) {
  const TreeNode& node = tree.nodes[index];
  out.append(static_cast<std::size_t>(depth) * 2, ' ');
  out += node.function.is_none() ? "*" : profile.strings[profile.functions[node.function].name];
  if (node.line != 0) out += ":" + std::to_string(node.line);
  out += " " + std::to_string(node.total_ns / kMillisecond) + "/" + std::to_string(node.self_ns / kMillisecond);
  out += " " + std::to_string(node.samples) + "/" + std::to_string(node.self_samples) + "\n";
  for (const std::size_t child : node.children) print(profile, tree, child, depth + 1, out);
}

std::string drawn_tree(const Profile& profile, Granularity granularity) {
  std::string out = "\n";
  print(profile, tree(profile, granularity), 0, 0, out);
  return out;
}

TEST(Tree, AnEmptyProfileHasOnlyTheRoot) {
  // GIVEN a profile without samples
  const Profile profile = draw_profile("");
  // WHEN it is aggregated
  const Tree result = tree(profile, Granularity::kFunction);
  // THEN there is one node, without weight
  ASSERT_EQ(result.nodes.size(), 1U);
  EXPECT_EQ(result.nodes[0].total_ns, 0);
  EXPECT_TRUE(result.nodes[0].function.is_none());
}

TEST(Tree, AddsTheWeightsOfSamplesOnTheSamePath) {
  // GIVEN samples that share callers
  const Profile profile = draw_profile(R"(
    main;work;inner   10
    main;work          2
    main;work;inner    5
    main               1
  )");
  // WHEN they are aggregated
  const std::string result = drawn_tree(profile, Granularity::kFunction);
  // THEN each node weighs what runs through it, and what ends at it
  EXPECT_EQ(result, R"(
* 18/0 4/0
  main 18/1 4/1
    work 17/2 3/1
      inner 15/15 2/2
)");
}

TEST(Tree, OrdersCalleesByTotalTime) {
  // GIVEN a heavy callee that was seen after a light one
  const Profile profile = draw_profile(R"(
    main;light   1
    main;heavy   9
  )");
  // WHEN they are aggregated THEN the heavy one comes first
  EXPECT_EQ(drawn_tree(profile, Granularity::kFunction), R"(
* 10/0 2/0
  main 10/0 2/0
    heavy 9/9 1/1
    light 1/1 1/1
)");
}

TEST(Tree, JoinsTheLinesOfAFunctionUnlessAskedForLines) {
  // GIVEN a function that was seen at two of its lines
  const Profile profile = draw_profile(R"(
    main(app.py:1);work(app.py:10)   3
    main(app.py:2);work(app.py:10)   4
  )");
  // WHEN the granularity is a function THEN it is one node
  EXPECT_EQ(drawn_tree(profile, Granularity::kFunction), R"(
* 7/0 2/0
  main 7/0 2/0
    work 7/7 2/2
)");
  // WHEN the granularity is a line THEN it is two
  EXPECT_EQ(drawn_tree(profile, Granularity::kLine), R"(
* 7/0 2/0
  main:2 4/0 1/0
    work:10 4/4 1/1
  main:1 3/0 1/0
    work:10 3/3 1/1
)");
}

TEST(Tree, KeepsRecursionAsAChain) {
  // GIVEN a function that calls itself WHEN it is aggregated THEN each depth is a node of its own
  const Profile profile = draw_profile(R"(
    fib;fib;fib   2
    fib;fib       1
  )");
  EXPECT_EQ(drawn_tree(profile, Granularity::kFunction), R"(
* 3/0 2/0
  fib 3/0 2/0
    fib 3/1 2/1
      fib 2/2 1/1
)");
}

TEST(Tree, PutsTheEmptyStackOnTheRoot) {
  // GIVEN a sample without frames WHEN it is aggregated THEN its time is the root's own
  const Profile profile = draw_profile(R"(
    -      5
    main   1
  )");
  EXPECT_EQ(drawn_tree(profile, Granularity::kFunction), R"(
* 6/5 2/1
  main 1/1 1/1
)");
}

TEST(Tree, TellsFunctionsOfOneNameApartByFile) {
  // GIVEN two functions called run WHEN they are aggregated THEN they stay two nodes
  const Profile profile = draw_profile(R"(
    run(a.py:1)   2
    run(b.py:1)   1
  )");
  EXPECT_EQ(drawn_tree(profile, Granularity::kFunction), R"(
* 3/0 2/0
  run 2/2 1/1
  run 1/1 1/1
)");
}

TEST(Tree, HasNothingOfWhatWasLeftOut) {
  // GIVEN a profile of which a part is selected
  Profile profile = draw_profile("main;parse;scan  3\nmain;idle  1");
  filter(profile, Filter{.function = "parse"});
  // WHEN it is aggregated THEN the tree has no node of the rest
  EXPECT_EQ(tree(profile, Granularity::kFunction).nodes.size(), 1U + 3U);
}

// The stacks of a drawn profile, one a line, turned round.
template <typename... Options>
std::vector<std::string> turned(std::string_view drawing, Options... options) {
  Profile profile = testing::draw_profile(drawing);
  turn_round(profile, options...);
  return testing::stacks_of(profile);
}

constexpr std::string_view kDrawing =
    "main;load;Parse;scan  1\n"
    "main;load;Parse;Parse;scan  1\n"
    "main;scan  1\n"
    "-  1";

TEST(Callers, StandBelowWhatTheyHaveCalled) {
  EXPECT_EQ(turned(kDrawing),
            (std::vector<std::string>{"scan;Parse;load;main", "scan;Parse;Parse;load;main", "scan;main", ""}));
}

TEST(Callers, OfAFunctionLeadToItsInnermostCall) {
  EXPECT_EQ(turned(kDrawing, "parse"), (std::vector<std::string>{"Parse;load;main", "Parse;Parse;load;main", "", ""}));
}

TEST(Callers, MayBeSoMany) {
  EXPECT_EQ(turned(kDrawing, "", 2U), (std::vector<std::string>{"scan;Parse", "scan;Parse", "scan;main", ""}));
}

TEST(Callers, OfAllocationsAreTheSame) {
  // GIVEN an allocation on a stack, and one without
  Profile profile = testing::draw_profile("main;work  1");
  profile.allocations.push_back({});
  profile.allocations.push_back({});
  profile.allocations[0].stack = profile.samples.stack[0];
  // WHEN stacks are turned round THEN so are theirs
  turn_round(profile);
  EXPECT_EQ(profile.allocations[0].stack, profile.samples.stack[0]);
  EXPECT_TRUE(profile.allocations[1].stack.is_none());
}

TEST(BeginAtFile, LeavesOutWhatHasCalledIt) {
  // GIVEN stacks with a file twice, once, and not at all
  Profile profile = draw_profile(R"(
    shell(shell.py:1);<module>(cell:1);run(lib.py:1);key(cell:2)  1
    shell(shell.py:1);<module>(cell:1)                            1
    worker(lib.py:5)                                              1
    shell(shell.py:1)                                             1
    -                                                             1
  )");
  // WHEN they begin there THEN its callers are gone, and others are as they were
  begin_at_file(profile, "cell");
  EXPECT_EQ(testing::stacks_of(profile),
            (std::vector<std::string>{"<module>;run;key", "<module>", "worker", "shell", ""}));
}

}  // namespace
}  // namespace plimsoll::profile
