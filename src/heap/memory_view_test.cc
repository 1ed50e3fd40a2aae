// heap/memory_view_test.cc: processes drawn by hand, with memory in which other memory lies.
#include "heap/memory_view.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "heap/buffers.h"
#include "heap/resident.h"
#include "heap/snapshot_reader.h"
#include "heap/snapshot_writer.h"
#include "heap/views.h"

namespace plimsoll::heap {
namespace {

constexpr std::uint64_t kObjects = 0x7f0000000000, kMapped = 0x7f2000000000;

// A process whose first object holds `buffers.size()` others, each of which owns such memory: start and size.
Snapshot process(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& buffers, bool has_regions = true) {
  SnapshotWriter writer;
  const auto list = writer.add_type("list"), owner = writer.add_type("app.Owner"), root = writer.add_type("[modules]");
  writer.begin_node(list, 64, 1, Address{kObjects});
  for (std::size_t i = 0; i < buffers.size(); ++i) writer.edge(EdgeKind::kElement, static_cast<Node>(i + 1));
  writer.end_node();
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    writer.begin_node(owner, 48 + buffers[i].second, 1, Address{kObjects + 64 * (i + 1)});
    writer.buffer(buffers[i].first, buffers[i].second);
    writer.end_node();
  }
  writer.end_objects();
  writer.begin_node(root, 0, 0, Address{});
  writer.edge(EdgeKind::kElement, 0);
  writer.end_node();
  writer.add_pools(std::vector<Pool>{{kObjects, 64, 200, 255, 1}});
  if (has_regions)
    writer.add_regions(std::vector<Region>{{0x400000, 0x3000, 0x2000, false, true, "/lib/libx.so"},
                                           {0x403000, 0x1000, 0x1000, true, false, "/lib/libx.so"},
                                           {0x600000, 0x10000, 0x8000, true, false, "[heap]"},
                                           {kObjects, 0x8000, 0x8000, true, false, ""},
                                           {kMapped, 0x10000, 0x10000, true, false, "/data/table"},
                                           {0x7ff000000000, 0x2000, 0x1000, true, false, "[stack]"}});
  writer.add_meta("small_block_bytes", "4096");
  EXPECT_TRUE(writer.finish().ok());
  return read_snapshot(writer.bytes()).take();
}

std::map<std::string, std::uint64_t> sizes_by_name(const Snapshot& snapshot) {
  std::map<std::string, std::uint64_t> sizes;
  for (auto node = static_cast<Node>(snapshot.object_count); node < snapshot.type.size(); ++node)
    sizes[describe(snapshot, node)] += snapshot.size[node];
  return sizes;
}

std::vector<std::uint64_t> owns(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& buffers) {
  std::vector<std::uint64_t> result;
  for (const Extent& extent : extents_of(process(buffers)).all) result.push_back(extent.own);
  return result;
}

using Bytes = std::vector<std::uint64_t>;

TEST(Extents, GiveEachByteToTheInnermost) {
  EXPECT_EQ(owns({{100, 50}, {200, 50}}), (Bytes{50, 50}));  // side by side
  EXPECT_EQ(owns({{100, 50}, {150, 50}}), (Bytes{50, 50}));  // one ends where the other begins
  EXPECT_EQ(owns({{100, 100}, {120, 10}, {150, 20}}), (Bytes{70, 10, 20}));
  EXPECT_EQ(owns({{100, 100}, {110, 50}, {120, 10}}), (Bytes{50, 40, 10}));  // one in another in another
  EXPECT_EQ(owns({{100, 100}, {100, 40}}), (Bytes{60, 40}));                 // from the same place on
  EXPECT_EQ(owns({{100, 100}, {150, 100}}), (Bytes{50, 100}));               // neither in the other: the later one's
  EXPECT_EQ(owns({}), Bytes{});
}

TEST(Extents, ThatSeveralObjectsOwnAreOne) {
  const Snapshot snapshot = process({{kMapped, 4096}, {kMapped + 8192, 100}, {kMapped, 4096}});
  const Extents extents = extents_of(snapshot);
  ASSERT_EQ(extents.all.size(), 2U);
  EXPECT_EQ(extents.of, (std::vector<std::uint32_t>{0, 1, 0}));
  // and in the mapping each byte counts once
  EXPECT_EQ(extents.in[4], 4196U);
}

TEST(Extents, MayLieInSeveralMappingsAndBetweenThem) {
  // GIVEN memory from within the mapping of a library into the next one and beyond its end
  const Extents extents = extents_of(process({{0x402000, 0x3000}}));
  EXPECT_EQ(extents.in[0], 0x1000U);
  EXPECT_EQ(extents.in[1], 0x1000U);
  EXPECT_EQ(extents.in[2], 0U);
}

TEST(MemoryView, HasANodeForAllThatMemoryIsUsedFor) {
  // GIVEN a file of 64 KiB in memory, half of which an object has mapped
  const Snapshot before = process({{kMapped, 0x8000}});
  const Snapshot snapshot = with_memory(before);
  const auto sizes = sizes_by_name(snapshot);
  // THEN that half is a buffer of its own, and the object is smaller by it
  EXPECT_EQ(sizes.at("buffer at 0x7f2000000000"), 0x8000U);
  EXPECT_EQ(snapshot.size[1], 48U);
  EXPECT_EQ(sizes.at("mapping /data/table"), 0x8000U);
  EXPECT_EQ(sizes.at("library /lib/libx.so"), 0x3000U);
  EXPECT_EQ(sizes.at("thread stack at 0x7ff000000000"), 0x1000U);
  EXPECT_EQ(sizes.at("small blocks that are no objects"), 200U * 64 - 4096);
  EXPECT_EQ(sizes.at("memory of native code, and what malloc has free"), 0x8000U);
  // AND all that is no object, with what the rest says of objects, is RSS
  const Resident rss = resident(before);
  const auto sum = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0},
                                   [](std::uint64_t all, const auto& each) { return all + each.second; });
  EXPECT_EQ(sum + rss.small_explained, rss.total);
}

TEST(MemoryView, OfStaticObjectsOnlyWhatLiesInTheFileIsTakenOffIt) {
  // GIVEN a static class with 3000 bytes, of which 400 are itself, in its library's file, and others are in the heap
  SnapshotWriter writer;
  writer.begin_node(writer.add_type("type"), 3000, 0, Address{0x401000});
  writer.end_node();
  writer.end_objects();
  writer.add_regions(std::vector<Region>{{0x400000, 0x2000, 0x2000, true, false, "/lib/libx.so"},
                                         {0x600000, 0x10000, 0x8000, true, false, "[heap]"}});
  writer.add_meta("large_block_bytes", "2600");
  writer.add_meta("static_bytes", "400");
  ASSERT_TRUE(writer.finish().ok());
  const Snapshot before = read_snapshot(writer.bytes()).take();
  // WHEN
  const Snapshot snapshot = with_memory(before);
  // THEN all together is RSS
  const auto sizes = sizes_by_name(snapshot);
  EXPECT_EQ(sizes.at("mapping /lib/libx.so"), 0x2000U - 400);
  EXPECT_EQ(snapshot.size.sum(), resident(before).total);
}

TEST(MemoryView, ABufferIsHeldByAllThatOwnIt) {
  // GIVEN two objects that own the same memory, and one that owns some of it
  const Snapshot snapshot = with_memory(process({{kMapped, 1000}, {kMapped, 1000}, {kMapped + 100, 200}}));
  const Node both = snapshot.root() == kNoNode ? 0 : snapshot.graph.from(1)[0];
  ASSERT_EQ(snapshot.graph.from(1).size(), 1U);
  EXPECT_EQ(snapshot.graph.from(2)[0], both);
  EXPECT_EQ(snapshot.size[both], 800U);
  EXPECT_EQ(snapshot.size[snapshot.graph.from(3)[0]], 200U);
  EXPECT_EQ(snapshot.type_name(both), "[buffer]");
  EXPECT_FALSE(snapshot.is_object(both));
  // and the root holds what it held, and the memory
  EXPECT_EQ(snapshot.type_name(snapshot.root()), "[root]");
  std::vector<std::string> tops;
  for (const Node node : snapshot.graph.from(snapshot.root())) tops.push_back(snapshot.type_name(node));
  EXPECT_EQ(tops, (std::vector<std::string>{"[modules]", "[native code]", "[garbage]", "[memory]"}));
}

TEST(MemoryView, CountsOfABufferWhatIsInMemory) {
  // GIVEN an object that has mapped 8 KiB of a library, and another 4 of it; of these 12, 8 are in memory
  const Snapshot snapshot = with_memory(process({{0x400000, 0x2000}, {0x402000, 0x1000}}));
  // THEN the buffers have as much together, and nothing is left for the library but its other mapping
  const auto sizes = sizes_by_name(snapshot);
  EXPECT_EQ(sizes.at("buffer at 0x400000"), 0x2000U * 2 / 3);
  EXPECT_EQ(sizes.at("buffer at 0x402000"), 0x1000U * 2 / 3);
  EXPECT_EQ(sizes.at("library /lib/libx.so"), 0x1000U);
}

TEST(MemoryView, CountsOfABufferInSeveralMappingsWhatIsInEach) {
  // GIVEN memory that begins in a mapping of which all of 4 KiB is in memory, goes on in one of which half is, and ends
  // outside of both
  const Snapshot snapshot = with_memory(process({{0x403000, 0x1000}, {0x600000, 0x20000}}));
  const auto sizes = sizes_by_name(snapshot);
  EXPECT_EQ(sizes.at("buffer at 0x403000"), 0x1000U);
  EXPECT_EQ(sizes.at("buffer at 0x600000"), 0x8000U);
}

TEST(MemoryView, CountsOfABufferAcrossMappingsWhatIsInAllOfThem) {
  // GIVEN memory that begins in one mapping, goes on through another, and ends in a third
  const auto sizes = sizes_by_name(with_memory(process({{0x402000, 0x206000}})));
  EXPECT_EQ(sizes.at("buffer at 0x402000"), 0x1000U + 0x1000 + 0x8000);
}

TEST(MemoryView, KnowsBuffersBesidePools) {
  // GIVEN a mapping of two pools and memory that an object owns, not all of which is in memory
  const auto make = [] {
    SnapshotWriter writer;
    const auto owner = writer.add_type("app.Owner");
    writer.begin_node(owner, 64 + 0x4000, 1, Address{kObjects + 48});
    writer.buffer(kObjects + 0x8000, 0x4000);
    writer.end_node();
    writer.end_objects();
    writer.add_pools(std::vector<Pool>{{kObjects, 64, 200, 255, 1}, {kObjects + 0x4000, 64, 100, 255, 1}});
    writer.add_regions(std::vector<Region>{{0x600000, 0x10000, 0x8000, true, false, "[heap]"},
                                           {kObjects, 0xc000, 0xb000, true, false, ""}});
    writer.add_meta("small_block_bytes", "64");
    writer.add_meta("large_block_bytes", std::to_string(0x4000));
    EXPECT_TRUE(writer.finish().ok());
    return read_snapshot(writer.bytes()).take();
  };
  const Snapshot before = make();
  const auto sizes = sizes_by_name(with_memory(before));
  // THEN what is missing is taken for what is free in the pools, and nothing of the heap for the buffer
  EXPECT_EQ(sizes.at("buffer at 0x7f0000008000"), 0x4000U);
  EXPECT_EQ(sizes.at("free in pools"), 0xb000U - 0x4000 - 300 * 64);
  EXPECT_EQ(sizes.at("memory of native code, and what malloc has free"), 0x8000U);
  EXPECT_FALSE(sizes.contains("beside pools in their mappings"));
  const Resident rss = resident(before);
  const auto sum = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0},
                                   [](std::uint64_t all, const auto& each) { return all + each.second; });
  EXPECT_EQ(sum + 64, rss.total);
}

TEST(MemoryView, StandsBelowAllOtherViews) {
  const Snapshot before = process({{kMapped, 0x8000}});
  const std::uint64_t expected = [&] {
    const Snapshot raw = with_memory(before);
    return raw.size.sum();
  }();
  // GIVEN views that fold objects, in whatever order they are asked for
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"memory", "module"}, {"module", "memory"}, {"list: *", "memory"}}) {
    View view;
    for (const std::string& each : words) view = add_view(std::move(view), each).take();
    const Snapshot snapshot = seen_as(before, view);
    // THEN nothing is lost, and buffers stay nodes of their own
    EXPECT_EQ(snapshot.size.sum(), expected);
    EXPECT_EQ(sizes_by_name(snapshot).at("buffer at 0x7f2000000000"), 0x8000U);
  }
}

TEST(MemoryView, IsTheSnapshotItselfWhereNothingIsKnown) {
  const Snapshot snapshot = with_memory(process({}, false));
  EXPECT_EQ(snapshot.type.size(), process({}, false).type.size());
  // and buffers are nodes also where mappings are not known
  EXPECT_EQ(sizes_by_name(with_memory(process({{4096, 100}}, false))).at("buffer at 0x1000"), 100U);
}

}  // namespace
}  // namespace plimsoll::heap
