// heap/path_patterns_test.cc: all ways to an object, in graphs drawn in text.
#include "heap/path_patterns.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "heap/snapshot_testing.h"

namespace plimsoll::heap {
namespace {

using testing::SnapshotDrawing;

// "2 app.Node.next* > 1 list[0]": how many hold, what one of them is, and how; without the root and its kinds.
std::vector<std::string> words_of(const Snapshot& snapshot, const PathPatterns& found) {
  std::vector<std::string> all;
  for (const PathPattern& pattern : found.patterns) {
    std::string words;
    for (const PatternStep& step : pattern) {
      if (!snapshot.is_object(step.holder)) continue;
      words += (words.empty() ? "" : " > ") + std::to_string(step.holders) + " " + snapshot.type_name(step.holder) +
               describe_edge(snapshot, step.holder, step.edge) + (step.repeats ? "*" : "");
    }
    all.push_back(words);
  }
  return all;
}

std::vector<std::string> patterns(const char* text, const char* name, std::size_t most = 100) {
  const SnapshotDrawing drawing(text);
  const Snapshot snapshot = drawing.snapshot();
  const PathPatterns found = path_patterns(snapshot, drawing[name], most);
  EXPECT_FALSE(found.is_cut);
  return words_of(snapshot, found);
}

TEST(PathPatterns, PathsThatPassTheSameClassesAreOneWithACount) {
  EXPECT_EQ(patterns(R"(
    users: list 72  a b c
    a: app.User 48  team=x
    b: app.User 48  team=x
    c: app.User 48  boss=x
    x: app.Team 48
    modules: [modules] 0  users=users
  )",
                     "x"),
            (std::vector<std::string>{"1 list[0] > 2 app.User.team", "1 list[2] > 1 app.User.boss"}));
}

TEST(PathPatterns, TheShortestComesFirstAndLongerOnesFollow) {
  EXPECT_EQ(patterns(R"(
    long: list 72  middle
    middle: tuple 72  x
    short: dict 72  k>x
    k: str 50
    x: app.Team 48
    modules: [modules] 0  long=long short=short
  )",
                     "x"),
            (std::vector<std::string>{"1 dict[str]", "1 list[0] > 1 tuple[0]"}));
}

TEST(PathPatterns, ARunOfEqualStepsIsOne) {
  // GIVEN a linked list that is held at its beginning and in the middle
  EXPECT_EQ(patterns(R"(
    a: app.Node 48  next=b
    b: app.Node 48  next=c
    c: app.Node 48  next=d
    d: app.Node 48  item=x
    x: str 50
    modules: [modules] 0  first=a middle=c
  )",
                     "x"),
            (std::vector<std::string>{"3 app.Node.next* > 1 app.Node.item", "1 app.Node.next > 1 app.Node.item"}));
}

TEST(PathPatterns, ARunMayBeLong) {
  // GIVEN a linked list of 200,000 nodes; by the square of that it would take minutes
  constexpr int kNodes = 200'000;
  std::string text = "x: str 50\n";
  for (int i = 0; i < kNodes; ++i) {
    const std::string next = i + 1 < kNodes ? "next=n" + std::to_string(i + 1) : "item=x";
    text += "n" + std::to_string(i) + ": app.Node 48  " + next + "\n";
  }
  text += "modules: [modules] 0  first=n0\n";
  EXPECT_EQ(patterns(text.c_str(), "x"),
            std::vector<std::string>{std::to_string(kNodes - 1) + " app.Node.next* > 1 app.Node.item"});
}

TEST(PathPatterns, CirclesEnd) {
  EXPECT_EQ(patterns(R"(
    a: app.A 48  b=b x=x
    b: app.B 48  a=a x=x
    x: str 50
    modules: [modules] 0  a=a
  )",
                     "x"),
            (std::vector<std::string>{"1 app.A.x", "1 app.A.b > 1 app.B.x"}));
}

TEST(PathPatterns, CountsOnlyWhatTheRootReachesThatWay) {
  // GIVEN two users of a team, one of which only garbage holds
  EXPECT_EQ(patterns(R"(
    users: list 72  a
    trash: tuple 72  b
    a: app.User 48  team=x
    b: app.User 48  team=x
    x: app.Team 48
    modules: [modules] 0  users=users
    frames: [frames] 0  trash=trash
  )",
                     "x"),
            (std::vector<std::string>{"1 list[0] > 1 app.User.team", "1 tuple[0] > 1 app.User.team"}));
}

TEST(PathPatterns, AreBounded) {
  // GIVEN a ladder: at each of forty rungs there are two ways, so there are 2^40 paths, of as many patterns
  std::string text;
  for (int i = 0; i < 40; ++i) {
    const std::string n = std::to_string(i);
    const std::string next = std::to_string(i + 1);
    text += "r" + n + ": app.R" + n + " 48  left=r" + next + " right=r" + next + "\n";
  }
  text += "r40: str 50\nmodules: [modules] 0  r=r0\n";
  const SnapshotDrawing drawing(text);
  const Snapshot snapshot = drawing.snapshot();
  // WHEN
  const PathPatterns found = path_patterns(snapshot, drawing["r40"], 7);
  // THEN
  EXPECT_EQ(found.patterns.size(), 7U);
  EXPECT_TRUE(found.is_cut);
  EXPECT_TRUE(path_patterns(snapshot, drawing["r40"], SIZE_MAX, 1000).is_cut) << "by the references looked at";
}

TEST(PathPatterns, AnObjectThatHoldsItselfIsNoWay) {
  EXPECT_EQ(patterns("a: list 72  a x\n x: str 50\n m: [modules] 0  a=a", "a"), std::vector<std::string>{""});
}

}  // namespace
}  // namespace plimsoll::heap
