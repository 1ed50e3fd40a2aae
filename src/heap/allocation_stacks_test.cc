// heap/allocation_stacks_test.cc: who allocated what, in snapshots drawn in text.
#include "heap/allocation_stacks.h"

#include <gtest/gtest.h>

#include "heap/groups.h"
#include "heap/snapshot_testing.h"

namespace plimsoll::heap {
namespace {

using testing::SnapshotDrawing;

const char* const kHeap = R"(
  list: list 72  a b c         @main:1/load:5
  a: app.Node 48  @main:1/load:6
  b: app.Node 48  @main:2/load:6
  c: app.Node 40
  modules: [modules] 0  app=list
)";

std::vector<std::string> group_names_of(const Snapshot& snapshot, GroupBy by) {
  std::vector<std::string> names;
  const NodeSet all = all_objects(snapshot);
  for (const GroupRow& row : groups(snapshot, dominance(snapshot), by, all))
    names.push_back(std::to_string(row.count) + " " + std::to_string(row.size) + " " + std::to_string(row.retained) +
                    " " + row.name);
  return names;
}

TEST(AllocationStacks, GoThroughTheFile) {
  // GIVEN two stacks that end at one line, and an object of which nothing was recorded
  const SnapshotDrawing drawing(kHeap);
  // WHEN written and read
  const Snapshot snapshot = drawing.snapshot();
  // THEN each object has its own
  const auto stack = [&](const char* name) { return snapshot.allocated.of_node(drawing[name]); };
  ASSERT_TRUE(snapshot.complete);
  EXPECT_EQ(describe_stack(snapshot.allocated, stack("a")), "load (app.py:6) < main (app.py:1)");
  EXPECT_EQ(describe_stack(snapshot.allocated, stack("b")), "load (app.py:6) < main (app.py:2)");
  EXPECT_EQ(describe_stack(snapshot.allocated, stack("b"), 1), "load (app.py:6) < ...");
  EXPECT_EQ(describe_site(snapshot.allocated, stack("list")), "load (app.py:5)");
  EXPECT_EQ(stack("c"), AllocationStacks::kNone);
}

TEST(AllocationStacks, GroupObjectsBySiteAndByStack) {
  const Snapshot snapshot = SnapshotDrawing(kHeap).snapshot();
  EXPECT_EQ(
      group_names_of(snapshot, GroupBy::kAllocationSite),
      (std::vector<std::string>{"2 96 96 load (app.py:6)", "1 72 208 load (app.py:5)", "1 40 40 [not recorded]"}));
  EXPECT_EQ(group_names_of(snapshot, GroupBy::kAllocationStack),
            (std::vector<std::string>{"1 72 208 load (app.py:5) < main (app.py:1)",
                                      "1 48 48 load (app.py:6) < main (app.py:1)",
                                      "1 48 48 load (app.py:6) < main (app.py:2)", "1 40 40 [not recorded]"}));
}

TEST(AllocationStacks, ASnapshotWithoutThemHasOneGroup) {
  const Snapshot snapshot = SnapshotDrawing("a: list 72\n  modules: [modules] 0  app=a\n").snapshot();
  EXPECT_TRUE(snapshot.allocated.of.empty());
  EXPECT_EQ(group_names_of(snapshot, GroupBy::kAllocationSite), (std::vector<std::string>{"1 72 72 [not recorded]"}));
}

TEST(AllocationStacks, DamagedOnesAreRefused) {
  StackBuilder builder;
  const std::uint32_t stack = builder.call(AllocationStacks::kNone, "main", "app.py", 1);
  std::string whole;
  put_stacks(whole, builder.stacks(), {stack});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    AllocationStacks read;
    std::vector<std::uint32_t> numbers;
    EXPECT_FALSE(read_stacks(std::string_view(whole).substr(0, size), read, numbers)) << size;
  }
  std::string wrong;
  put_stacks(wrong, builder.stacks(), {7});
  AllocationStacks read;
  std::vector<std::uint32_t> numbers;
  EXPECT_FALSE(read_stacks(wrong, read, numbers)) << "a stack that is not there";
}

}  // namespace
}  // namespace plimsoll::heap
