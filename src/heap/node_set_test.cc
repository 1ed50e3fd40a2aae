// heap/node_set_test.cc: selections of heaps drawn in text, and what would be freed with them.
#include "heap/node_set.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <random>
#include <string>

#include "heap/analysis.h"
#include "heap/snapshot_testing.h"

namespace plimsoll::heap {
namespace {

using testing::SnapshotDrawing;

// Two connections share a buffer that nobody else holds; a third has one of its own, which a cache holds, too.
const char* const kConnections = R"(
  pool: list 80  one two three
  one: app.Conn 48  buffer=shared
  two: app.Conn 48  buffer=shared
  three: app.Conn 48  buffer=own
  shared: bytearray 1000
  own: bytearray 500
  cache: app.Cache 64  buffer=own
  modules: [modules] 0  pool=pool cache=cache
)";

NodeSet set_of(const SnapshotDrawing& drawing, const Snapshot& snapshot, std::initializer_list<const char*> names) {
  NodeSet set(snapshot.object_count);
  for (const char* name : names) set.insert(drawing[name]);
  return set;
}

class NodeSets : public ::testing::Test {
 protected:
  [[nodiscard]] NodeSet of(std::initializer_list<const char*> names) const {
    return set_of(drawing_, snapshot_, names);
  }

  const SnapshotDrawing drawing_{kConnections};
  const Snapshot snapshot_ = drawing_.snapshot();
};

TEST_F(NodeSets, AreCombinedAsSets) {
  const NodeSet left = of({"one", "two"});
  const NodeSet right = of({"two", "three"});
  EXPECT_EQ(NodeSet(left) |= right, of({"one", "two", "three"}));
  EXPECT_EQ(NodeSet(left) &= right, of({"two"}));
  EXPECT_EQ(NodeSet(left) -= right, of({"one"}));
  EXPECT_EQ(NodeSet(left) ^= right, of({"one", "three"}));
  EXPECT_TRUE(of({"two"}).is_within(left));
  EXPECT_FALSE(right.is_within(left));
  EXPECT_EQ(left.count(), 2U);
  EXPECT_EQ((NodeSet(all_objects(snapshot_)) -= left).count(), snapshot_.object_count - 2);
  EXPECT_EQ(size_of(snapshot_, left), 96U);
}

TEST_F(NodeSets, HaveNoRootsInThem) {
  NodeSet set(snapshot_.object_count);
  EXPECT_FALSE(set.insert(snapshot_.root()));
  EXPECT_FALSE(set.contains(snapshot_.root()));
  EXPECT_EQ(set.count(), 0U);
}

TEST_F(NodeSets, AreFoundByClassOrPattern) {
  EXPECT_EQ(objects_of(snapshot_, "app.Conn"), of({"one", "two", "three"}));
  EXPECT_EQ(objects_of(snapshot_, "app.*"), of({"one", "two", "three", "cache"}));
  EXPECT_EQ(objects_of(snapshot_, "app"), of({}));
}

TEST_F(NodeSets, WhatSeveralHoldTogetherIsFreedWithAllOfThem) {
  EXPECT_EQ(retained_by(snapshot_, of({"one"})), of({"one"}));
  EXPECT_EQ(retained_by(snapshot_, of({"one", "two"})), of({"one", "two", "shared"}));
  EXPECT_EQ(retained_by(snapshot_, of({"one", "two", "three"})), of({"one", "two", "three", "shared"}))
      << "the cache holds the other buffer";
  EXPECT_EQ(retained_by(snapshot_, of({"pool", "cache"})), all_objects(snapshot_));
}

TEST_F(NodeSets, TellWhatHoldsThemAndWhatTheyHold) {
  EXPECT_EQ(held_by(snapshot_, of({"pool", "cache"})), of({"one", "two", "three", "own"}));
  EXPECT_EQ(holders_of(snapshot_, of({"own"})), of({"three", "cache"}));
  EXPECT_EQ(holders_of(snapshot_, of({"pool"})), of({})) << "a root is no object";
  EXPECT_EQ(reached_from(snapshot_, of({"pool"})), of({"pool", "one", "two", "three", "shared", "own"}));
}

// Buffers, in a view of memory, and roots.
TEST_F(NodeSets, WhatIsNoObjectIsFreedWithThoseThatHoldItAlone) {
  // GIVEN two objects that own a buffer together, and a call that holds one of them
  const SnapshotDrawing drawing(R"(
    one: app.Map 48  buffer
    two: app.Map 48  buffer
    buffer: [buffer] 4096
    frame: [frame] 0  one
    modules: [modules] 0  two frame
  )");
  const Snapshot snapshot = drawing.snapshot();
  const NodeSet one = set_of(drawing, snapshot, {"one"});
  const NodeSet both = set_of(drawing, snapshot, {"one", "two"});
  // WHEN / THEN
  EXPECT_EQ(retained_size(snapshot, one), 48U);
  EXPECT_EQ(retained_size(snapshot, both), 48U + 48U + 4096U);
  EXPECT_EQ(retained_by(snapshot, both), both) << "of a set of objects, objects";
  EXPECT_TRUE(retained_by(snapshot, among_all_nodes(snapshot, both)).contains(drawing["buffer"]));
  // AND of all nodes a root may be one
  NodeSet frame(snapshot.graph.size());
  frame.insert(drawing["frame"]);
  EXPECT_EQ(retained_size(snapshot, frame), 48U);
  frame.insert(snapshot.root());
  EXPECT_EQ(retained_size(snapshot, frame), 48U + 48U + 4096U);
}

// Of one object it is what the tree of dominators says.
TEST(NodeSetsOfAnyHeap, OneObjectRetainsWhatItDominates) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    // GIVEN a heap of some objects, each of which holds any others
    std::string drawing;
    for (int i = 0; i < 30; ++i) {
      drawing += "n" + std::to_string(i) + ": list " + std::to_string(16 * (i + 1)) + " ";
      for (std::uint32_t edge = 0; edge < random() % 4; ++edge) drawing += " n" + std::to_string(random() % 30);
      drawing += "\n";
    }
    const Snapshot snapshot = SnapshotDrawing(drawing + "modules: [modules] 0  a=n0 b=n1\n").snapshot();
    const Dominance result = dominance(snapshot);
    // WHEN / THEN
    for (Node node = 0; node < snapshot.object_count; ++node) {
      NodeSet one(snapshot.object_count);
      one.insert(node);
      EXPECT_EQ(size_of(snapshot, retained_by(snapshot, one)), result.retained[node]) << node << "\n" << drawing;
    }
  }
}

}  // namespace
}  // namespace plimsoll::heap
