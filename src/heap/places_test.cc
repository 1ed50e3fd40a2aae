// heap/places_test.cc: where objects are held, in heaps drawn in text; groups of objects.
#include "heap/places.h"

#include <gtest/gtest.h>

#include "heap/duplicates.h"
#include "heap/groups.h"
#include "heap/snapshot_testing.h"

namespace plimsoll::heap {
namespace {

using testing::SnapshotDrawing;

const char* const kHeap = R"(
  app: module 48  __dict__=ns
  ns: dict 200  cache=cache
  cache: dict 200  key>list
  key: str 50
  list: list 80  first second
  first: app.Session 64  tags=tags
  second: app.Session 64  tags=tags2
  tags: list 56
  tags2: list 56
  modules: [modules] 0  app=app
)";

TEST(Places, NameTheLastHolderThatIsNoContainer) {
  const SnapshotDrawing drawing(kHeap);
  const Snapshot snapshot = drawing.snapshot();
  const Places found = places(snapshot);
  const auto place = [&](const char* name) { return found.names[found.of[drawing[name]]]; };
  EXPECT_EQ(place("app"), "[modules].app");
  EXPECT_EQ(place("cache"), "module.cache") << "the dict is a part of the module";
  EXPECT_EQ(place("key"), "module.cache key");
  EXPECT_EQ(place("first"), "module.cache[][]");
  EXPECT_EQ(place("tags"), "app.Session.tags");
  EXPECT_EQ(found.of[drawing["tags"]], found.of[drawing["tags2"]]);
}

TEST(Places, DoNotGrowWithoutEnd) {
  std::string text = "  m: [modules] 0  x=l0\n";
  for (int i = 20; i >= 0; --i)
    text.insert(0, "  l" + std::to_string(i) + ": list 64" + (i == 20 ? "" : "  l" + std::to_string(i + 1)) + "\n");
  const SnapshotDrawing drawing(text);
  const Places found = places(drawing.snapshot());
  EXPECT_EQ(found.names[found.of[drawing["l20"]]], "[modules].x[][][]");
  EXPECT_EQ(found.of[drawing["l19"]], found.of[drawing["l20"]]);
}

TEST(Groups, ByWhereByHoldersByModuleAndBySize) {
  const SnapshotDrawing drawing(kHeap);
  const Snapshot snapshot = drawing.snapshot();
  const Dominance result = dominance(snapshot);
  const NodeSet all = all_objects(snapshot);
  const auto row = [&](GroupBy by, std::string_view name) {
    for (const GroupRow& each : groups(snapshot, result, by, all))
      if (each.name == name) return each;
    return GroupRow{};
  };
  EXPECT_EQ(row(GroupBy::kPlace, "app.Session.tags").count, 2U);
  EXPECT_EQ(row(GroupBy::kPlace, "app.Session.tags").retained, 112U);
  EXPECT_EQ(row(GroupBy::kReferrers, "list").count, 2U) << "both sessions";
  EXPECT_EQ(row(GroupBy::kReferrers, "app.Session").size, 112U);
  EXPECT_EQ(row(GroupBy::kModule, "app").count, 2U);
  EXPECT_EQ(row(GroupBy::kModule, "app").retained, 240U);
  const GroupRow builtins = row(GroupBy::kModule, "builtins");
  EXPECT_GE(builtins.retained, builtins.size) << "whatever module a root seems to be of";
  const GroupRow unknown = row(GroupBy::kGeneration, "not known");
  EXPECT_EQ(unknown.retained, unknown.size) << "which are all objects";
  EXPECT_EQ(row(GroupBy::kSize, "128 to 255").count, 2U);
  EXPECT_EQ(row(GroupBy::kGeneration, "not known").count, snapshot.object_count);
  EXPECT_EQ(group_by("place"), GroupBy::kPlace);
  EXPECT_EQ(group_by("colour"), std::nullopt);
}

TEST(Duplicates, AreEqualHashesOfOneClass) {
  // GIVEN three equal strs, one of them longer in memory, bytes with the same hash, and another str
  SnapshotWriter writer;
  const auto str = writer.add_type("str"), bytes = writer.add_type("bytes"), root = writer.add_type("[modules]");
  std::uint64_t address = 0x1000;
  const auto put = [&](std::uint32_t type, std::uint64_t size, std::uint64_t hash) {
    writer.begin_node(type, size, 1, Address{address += 64});
    writer.content_hash(hash);
    writer.end_node();
  };
  put(str, 50, 7);
  put(str, 60, 7);
  put(bytes, 40, 7);
  put(str, 50, 8);
  put(str, 50, 7);
  writer.end_objects();
  writer.begin_node(root, 0, 0, Address{});
  writer.text("modules");
  writer.named_edge(0, writer.add_name("a"));
  writer.named_edge(1, writer.add_name("b"));
  writer.named_edge(4, 1);
  writer.end_node();
  ASSERT_TRUE(writer.finish().ok());
  const Snapshot snapshot = read_snapshot(writer.bytes()).take();
  const Places where = places(snapshot);
  // WHEN
  const std::vector<Duplicate> found = duplicates(snapshot, where);
  // THEN
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].count, 3U);
  EXPECT_EQ(found[0].size, 160U);
  EXPECT_EQ(found[0].waste, 100U);
  EXPECT_EQ(found[0].first, 0U);
  EXPECT_EQ(where.names[found[0].place], "modules.b");
  EXPECT_EQ(found[0].held_there, 2U);
}

TEST(Places, ClassesOfReferrersHaveANameOnce) {
  // GIVEN objects that objects of five classes hold, four of them the same
  std::string drawing = "x: int 32\n y: int 32\n";
  for (const char* type : {"a", "b", "c", "d"}) drawing += std::string("o") + type + ": " + type + " 8  x y\n";
  drawing += "e: e 8  x\n f: f 8  y\n modules: [modules] 0  oa ob oc od e f\n";
  const testing::SnapshotDrawing drawn(drawing);
  const Snapshot snapshot = drawn.snapshot();
  // WHEN
  const Places found = referrer_classes(snapshot, reversed(snapshot.graph));
  // THEN what is called the same is one
  EXPECT_EQ(found.names[found.of[drawn["x"]]], "a, b, c, d and 1 more");
  EXPECT_EQ(found.of[drawn["x"]], found.of[drawn["y"]]);
}

}  // namespace
}  // namespace plimsoll::heap
