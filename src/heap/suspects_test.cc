// heap/suspects_test.cc: piles drawn in text.
#include "heap/suspects.h"

#include <gtest/gtest.h>

#include "heap/snapshot_testing.h"
#include "heap/views.h"

namespace plimsoll::heap {
namespace {

using testing::SnapshotDrawing;

TEST(HeapSuspects, FollowTheHoldersDownToWhereItPilesUp) {
  // GIVEN a module whose cache holds many sessions, and others that matter little
  const SnapshotDrawing drawing(R"(
    app: module 48  __dict__=ns
    ns: dict 200  key>cache
    key: str 50
    cache: app.Cache 64  entries=entries
    entries: list 400  first second third
    first: app.Session 3000
    second: app.Session 3000
    third: str 500
    other: module 900
    modules: [modules] 0  app=app other=other
  )");
  const Snapshot snapshot = seen_as(drawing.snapshot(), {{ViewStage::Kind::kParts, {}}});
  const auto at = [&](const char* name) { return testing::place(snapshot, drawing, name); };
  // WHEN
  const std::vector<Suspect> found = suspects(snapshot, dominance(snapshot), 0.2);
  // THEN
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].node, at("entries"));
  EXPECT_EQ(found[0].holders, (std::vector<Node>{at("app"), at("cache"), at("entries")}));
  EXPECT_EQ(found[0].retained, 6900U);
  EXPECT_EQ(snapshot.types[found[0].piled_type].name, "app.Session");
  EXPECT_EQ(found[0].piled_count, 2U);
  EXPECT_EQ(found[0].piled_retained, 6000U);
}

TEST(HeapSuspects, AClassIsSuspectedWhereNoObjectIs) {
  // GIVEN ten modules of one size, none of which is a fifth
  std::string text;
  for (int i = 0; i < 10; ++i) text += "m" + std::to_string(i) + ": module 100\n";
  text += "modules: [modules] 0";
  for (int i = 0; i < 10; ++i) text += " m" + std::to_string(i);
  const Snapshot snapshot = SnapshotDrawing(text).snapshot();
  // WHEN
  const std::vector<Suspect> found = suspects(snapshot, dominance(snapshot), 0.2);
  // THEN
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].node, kNoNode);
  EXPECT_EQ(found[0].count, 10U);
  EXPECT_EQ(found[0].retained, 1000U);
}

TEST(HeapSuspects, AreWhatHoldsALinkedListAndNotTheMiddleOfIt) {
  // GIVEN a module that holds a list of a thousand nodes, each of which holds the next
  std::string text = "app: module 48  head=n0\n";
  for (int i = 0; i < 1000; ++i)
    text += "n" + std::to_string(i) + ": app.Node 100" + (i < 999 ? "  next=n" + std::to_string(i + 1) : "") + "\n";
  const SnapshotDrawing drawing(text + "modules: [modules] 0  app=app");
  const Snapshot snapshot = drawing.snapshot();
  // WHEN
  const std::vector<Suspect> found = suspects(snapshot, dominance(snapshot), 0.1);
  // THEN
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].node, testing::place(snapshot, drawing, "n0"));
  EXPECT_EQ(found[0].retained, 100'000U);
  EXPECT_EQ(found[0].holders.size(), 2U);
  EXPECT_TRUE(found[0].repeats);
}

TEST(HeapSuspects, RetainAtLeastHalfOfWhatTheirOutermostHolderDoes) {
  // GIVEN objects that hold one another, each a tenth of the whole
  std::string text = "o0: app.O0 100  next=o1\n";
  for (int i = 1; i < 10; ++i) {
    const std::string number = std::to_string(i);
    text += "o" + number + ": app.O" + number + " 100" + (i < 9 ? "  next=o" + std::to_string(i + 1) : "") + "\n";
  }
  const Snapshot snapshot = SnapshotDrawing(text + "modules: [modules] 0  o0=o0").snapshot();
  // WHEN
  const std::vector<Suspect> found = suspects(snapshot, dominance(snapshot), 0.1);
  // THEN
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].retained, 500U);
  EXPECT_FALSE(found[0].repeats);
}

TEST(HeapSuspects, AnEvenHeapHasNone) {
  const Snapshot snapshot =
      SnapshotDrawing("a: list 100\n b: dict 100\n c: set 100\n d: str 100\n m: [modules] 0 a b c d").snapshot();
  EXPECT_TRUE(suspects(snapshot, dominance(snapshot), 0.3).empty());
}

}  // namespace
}  // namespace plimsoll::heap
