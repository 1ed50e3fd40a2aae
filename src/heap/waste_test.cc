// heap/waste_test.cc: containers that are empty or too large, in heaps drawn in text.
#include "heap/waste.h"

#include <gtest/gtest.h>

#include "heap/snapshot_testing.h"

namespace plimsoll::heap {
namespace {

using testing::SnapshotDrawing;

TEST(Waste, IsWhatContainersHaveBeyondWhatTheyHold) {
  // GIVEN an empty list, one that is full, and one with room for eight more
  const SnapshotDrawing drawing(R"(
    empty: list 64
    full: list 80  empty empty
    large: list 144  empty empty
    x: object 16
    modules: [modules] 0  e=empty f=full l=large
  )");
  const Snapshot snapshot = drawing.snapshot();
  const Places where = places(snapshot);
  // WHEN
  const std::vector<Waste> rows = waste(snapshot, where);
  // THEN
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].kind, WasteKind::kEmpty);
  EXPECT_EQ(rows[0].waste, 64U);
  EXPECT_EQ(rows[1].kind, WasteKind::kTooLarge);
  EXPECT_EQ(rows[1].waste, 64U);
  EXPECT_EQ(rows[1].count, 1U);
  EXPECT_EQ(where.names[rows[1].place], "[modules].l");
}

TEST(Waste, OfADictIsItsTableBeyondTheLeastOne) {
  // GIVEN dicts of one entry: with a table of 8, which is the least, and with one of 64
  const SnapshotDrawing drawing(R"(
    none: dict 64
    least: dict 192  key>none
    large: dict 800  key>none
    key: str 50
    modules: [modules] 0  n=none l=least x=large
  )");
  const Snapshot snapshot = drawing.snapshot();
  const std::vector<Waste> rows = waste(snapshot, places(snapshot));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].waste, 800U - 64 - 128) << "32 + 8 + 5 * 16 is 120, in a block of 128";
  EXPECT_EQ(rows[1].kind, WasteKind::kEmpty);
}

TEST(Waste, IsTheSameInAViewOfMemory) {
  // GIVEN a list with room for eight more, whose items are a node of their own that is no object
  const SnapshotDrawing drawing(R"(
    empty: list 64
    large: list 64  empty empty table
    modules: [modules] 0  e=empty l=large
    table: [buffer] 80
  )");
  const Snapshot snapshot = drawing.snapshot();
  const std::vector<Waste> rows = waste(snapshot, places(snapshot));
  // THEN what it has is what both have, and the node is no item
  ASSERT_EQ(rows.size(), 2U);
  const Waste& large = rows[0].kind == WasteKind::kTooLarge ? rows[0] : rows[1];
  EXPECT_EQ(large.size, 144U);
  EXPECT_EQ(large.waste, 64U);
}

TEST(Waste, IsNotSaidOfWhatHoldsWeakly) {
  // GIVEN a dict as that of interned strs, which does not keep them alive
  const SnapshotDrawing drawing(R"(
    interned: dict 200000  ~a ~b
    a: str 50
    b: str 50
    modules: [modules] 0  i=interned a=a b=b
  )");
  const Snapshot snapshot = drawing.snapshot();
  EXPECT_TRUE(waste(snapshot, places(snapshot)).empty());
}

TEST(Waste, KnowsTablesOfDictsAndSets) {
  EXPECT_EQ(least_dict_table(0, true, 13), 0U);
  EXPECT_EQ(least_dict_table(5, true, 13), 32U + 8 + 5 * 16);
  EXPECT_EQ(least_dict_table(6, true, 13), 32U + 16 + 10 * 16);
  EXPECT_EQ(least_dict_table(5, false, 13), 32U + 8 + 5 * 24);
  EXPECT_EQ(least_dict_table(100, true, 9), 40U + 256 * 2 + 170 * 24);
  EXPECT_EQ(least_set_table(4), 0U);
  EXPECT_EQ(least_set_table(5), 16U * 16) << "of a copy; one that grows has 32 places";
  EXPECT_EQ(least_set_table(8), 32U * 16);
  EXPECT_EQ(least_set_table(17), 32U * 16) << "of one that grows; a copy has 64";
  EXPECT_EQ(least_set_table(33), 128U * 16);
  EXPECT_EQ(least_set_table(100), 256U * 16);
  EXPECT_EQ(least_set_table(20'000), 65'536U * 16);
  EXPECT_EQ(least_set_table(200'000), 524'288U * 16);
}

}  // namespace
}  // namespace plimsoll::heap
