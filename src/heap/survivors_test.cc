// heap/survivors_test.cc: three snapshots drawn in text.
#include "heap/survivors.h"

#include <gtest/gtest.h>

#include "heap/snapshot_testing.h"

namespace plimsoll::heap {
namespace {

using testing::SnapshotDrawing;

// Objects have the addresses 0x1000, 0x1020, ... in the order of lines: a "free" one keeps a place for another.
TEST(HeapSurvivors, CameAfterTheFirstAndAreThereInTheThird) {
  const Snapshot first =
      SnapshotDrawing("a: list 64\n x: free 0\n y: free 0\n z: free 0\n m: [modules] 0 a").snapshot();
  const Snapshot second =
      SnapshotDrawing("a: list 64\n leak: app.Node 48\n gone: app.Node 48\n z: free 0\n m: [modules] 0 a leak gone")
          .snapshot();
  const SnapshotDrawing later(
      "a: list 64\n leak: app.Node 48\n other: str 50\n late: app.Node 48\n m: [modules] 0 a leak");
  const Snapshot third = later.snapshot();

  // WHEN
  const NodeSet found = survivors(first, second, third);

  // THEN one object is a survivor: not what was always there, nor what another class has in its place, nor what is new
  ASSERT_EQ(found.universe(), third.object_count);
  for (const char* name : {"a", "other", "late", "m"}) EXPECT_FALSE(found.contains(later[name])) << name;
  EXPECT_TRUE(found.contains(later["leak"]));
}

TEST(HeapSurvivors, AreAddedUpByClass) {
  // GIVEN a survivor that holds another of its class, and data
  const SnapshotDrawing drawing(
      "old: app.Node 48 new=new\n new: app.Node 48 next=next\n next: app.Node 48 data=data\n data: bytes 1000\n"
      " m: [modules] 0 old");
  const Snapshot third = drawing.snapshot();
  NodeSet chosen(third.object_count);
  chosen.insert(drawing["new"]);
  chosen.insert(drawing["next"]);
  // WHEN
  const std::vector<TypeRow> rows = types(third, dominance(third), chosen);
  // THEN what both retain counts once, and what holds them does not
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(third.types[rows[0].type].name, "app.Node");
  EXPECT_EQ(rows[0].count, 2U);
  EXPECT_EQ(rows[0].size, 96U);
  EXPECT_EQ(rows[0].retained, 1096U);
}

}  // namespace
}  // namespace plimsoll::heap
