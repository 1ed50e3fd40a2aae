// heap/analysis_test.cc: answers about heaps drawn in text.
#include "heap/analysis.h"

#include <gtest/gtest.h>

#include "heap/snapshot_testing.h"

namespace plimsoll::heap {
namespace {

using testing::SnapshotDrawing;

// Two sessions in a dict; one holds the other in a list, and both hold the shared list.
const char* const kSessions = R"(
  sessions: dict 200  key>first
  key: str 50
  first: app.Session 64  peers=peers data=shared
  peers: list 80  second
  second: app.Session 64  data=shared
  shared: list 1000
  alone: list 56
  modules: [modules] 0  sessions=sessions
)";

const TypeRow* row_of(const std::vector<TypeRow>& rows, const Snapshot& snapshot, std::string_view type) {
  for (const TypeRow& row : rows)
    if (snapshot.types[row.type].name == type) return &row;
  return nullptr;
}

TEST(HeapTypes, CountSizeAndWhatWouldBeFreedWithAllOfAClass) {
  const Snapshot snapshot = SnapshotDrawing(kSessions).snapshot();
  const std::vector<TypeRow> rows = types(snapshot, dominance(snapshot));
  ASSERT_EQ(rows.size(), 4U) << "dict, str, Session, list";
  EXPECT_EQ(snapshot.types[rows[0].type].name, "list") << "the largest first";
  const TypeRow* sessions = row_of(rows, snapshot, "app.Session");
  ASSERT_NE(sessions, nullptr);
  EXPECT_EQ(sessions->count, 2U);
  EXPECT_EQ(sessions->size, 128U);
  EXPECT_EQ(sessions->retained, 64U + 80 + 64 + 1000) << "the second is not counted again";
  EXPECT_EQ(row_of(rows, snapshot, "list")->retained, 80U + 64 + 1000 + 56);
}

TEST(HeapTree, ShowsWhatRetainsMostFirstAndCountsTheRest) {
  const SnapshotDrawing drawing(kSessions);
  const Snapshot snapshot = drawing.snapshot();
  const Dominance result = dominance(snapshot);
  EXPECT_EQ(result.retained[snapshot.root()], 200U + 50 + 64 + 80 + 64 + 1000 + 56);
  const auto rows = dominator_rows(result, drawing["first"], {.depth = 1, .children = 1, .least_retained = 1});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].node, drawing["first"]);
  EXPECT_EQ(rows[0].left_out, 1U);
  EXPECT_EQ(rows[1].node, drawing["shared"]) << "held by both, so it belongs to the one that holds the other";
  EXPECT_EQ(rows[1].retained, 1000U);
}

TEST(HeapLargest, AreObjectsWithNoObjectAboveThemHoweverDeepInRoots) {
  // GIVEN what a local variable of a thread's frame holds, and what a module does
  const SnapshotDrawing drawing(R"(
  local: list 100  inside
  inside: bytes 5000
  other: str 60
  module: module 80  data=data
  data: bytes 1000
  threads: [threads] 0  thread
  thread: [thread] 0  frame
  frame: [frame] 0  local=local other=other
  modules: [modules] 0  module=module
  root: [root] 0  threads=threads modules=modules
)");
  const Snapshot snapshot = drawing.snapshot();
  // WHEN the largest are asked for THEN they are these, and nothing that belongs to one of them
  EXPECT_EQ(largest(snapshot, dominance(snapshot), 10),
            (std::vector<Node>{drawing["local"], drawing["module"], drawing["other"]}));
  EXPECT_EQ(largest(snapshot, dominance(snapshot), 1), (std::vector<Node>{drawing["local"]}));
  EXPECT_TRUE(largest(snapshot, dominance(snapshot), 0).empty());
}

TEST(HeapLargest, AreBelowFramesThatAreObjects) {
  // GIVEN calls of Python 3.10, each of which holds the one that called it, and a generator, which holds its own
  const SnapshotDrawing drawing(R"(
  inner: frame 400  back=outer kept=kept
  outer: frame 400  local=local
  kept: bytes 2000
  local: list 100  inside
  inside: bytes 5000
  waiting: generator 100  own=own
  own: frame 400  data=data
  data: bytes 1000
  thread: [thread] 0  frame=inner
  root: [root] 0  thread=thread waiting=waiting
)");
  const Snapshot snapshot = drawing.snapshot();
  // THEN the largest are what these hold
  EXPECT_EQ(largest(snapshot, dominance(snapshot), 10),
            (std::vector<Node>{drawing["local"], drawing["kept"], drawing["waiting"]}));
}

TEST(HeapFind, ByAddressByClassAndByText) {
  const SnapshotDrawing drawing(kSessions);
  const Snapshot snapshot = drawing.snapshot();
  const Dominance result = dominance(snapshot);
  EXPECT_EQ(find_object(snapshot, result, "0x1040"), drawing["first"]);
  EXPECT_EQ(find_object(snapshot, result, "app.Session"), drawing["first"]) << "retains more than the other";
  EXPECT_EQ(find_object(snapshot, result, "0x1048"), std::nullopt);
  EXPECT_EQ(find_object(snapshot, result, "0xzz"), std::nullopt);
  EXPECT_EQ(find_object(snapshot, result, "app.Nothing"), std::nullopt);
}

TEST(HeapDiff, CountsByClassAndTellsTheNewInOneProcess) {
  const Snapshot before = SnapshotDrawing("a: list 64\n b: app.Node 48\n m: [modules] 0 a b").snapshot();
  const SnapshotDrawing later("a: list 64\n b: list 64\n c: app.Node 48\n d: app.Node 48\n m: [modules] 0 a b c d");
  // WHEN
  const std::vector<TypeChange> rows = changes(before, later.snapshot());
  // THEN the list in the place of a node is new, and so are the nodes at new places
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].type, "list");
  EXPECT_EQ(rows[0].size_after - rows[0].size_before, 64);
  EXPECT_EQ(rows[0].born, 1U);
  EXPECT_EQ(rows[1].count_before, 1);
  EXPECT_EQ(rows[1].count_after, 2);
  EXPECT_EQ(rows[1].born, 2U);
  EXPECT_EQ(changes(before, later.snapshot("2:b"))[0].born, 0U) << "of another process, an address tells nothing";
}

TEST(HeapDiff, TellsWhyObjectsCannotBeFollowed) {
  const SnapshotDrawing drawing("a: list 64\n m: [modules] 0 a");
  const Snapshot inside = drawing.snapshot("1:a");
  Snapshot outside = drawing.snapshot("1@77");
  outside.meta.emplace_back("taken", "from outside");
  Snapshot other = drawing.snapshot("11@77");
  other.meta.emplace_back("taken", "from outside");
  EXPECT_NE(why_not_of_one_process(inside, outside).find("one from outside"), std::string_view::npos);
  EXPECT_NE(why_not_of_one_process(inside, other).find("different processes"), std::string_view::npos);
  EXPECT_NE(why_not_of_one_process(inside, drawing.snapshot("1:b")).find("different"), std::string_view::npos);
}

}  // namespace
}  // namespace plimsoll::heap
