// heap/resident_test.cc: arenas and RSS of processes drawn by hand.
#include "heap/resident.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "heap/arenas.h"
#include "heap/snapshot_reader.h"
#include "heap/snapshot_writer.h"

namespace plimsoll::heap {
namespace {

constexpr std::uint64_t kArena = 0x7f0000000000, kNextArena = kArena + 0x100000, kStack = 0x7f1000000000;

// Two arenas of two pools each; the second has one object only. A thread whose stack is at kStack.
Snapshot process() {
  SnapshotWriter writer;
  const auto list = writer.add_type("list"), session = writer.add_type("app.Session"),
             thread = writer.add_type("[thread]");
  const auto put = [&](std::uint32_t type, std::uint64_t address) {
    writer.begin_node(type, 64, 1, Address{address});
    writer.end_node();
  };
  put(list, kArena + 48);
  put(list, kArena + 112);
  put(session, kArena + 176);
  put(session, kNextArena + 48);
  writer.end_objects();
  writer.begin_node(thread, 0, 0, Address{});
  writer.text("thread " + std::to_string(kStack + 0x700));
  for (Node node = 0; node < 4; ++node) writer.edge(EdgeKind::kElement, node);
  writer.end_node();
  writer.add_pools(std::vector<Pool>{{kArena, 64, 250, 255, 3},
                                     {kArena + 16384, 512, 31, 31, 3},
                                     {kNextArena, 64, 2, 255, 4},
                                     {kNextArena + 16384, 64, 0, 255, 4}});
  writer.add_regions(std::vector<Region>{{0x400000, 0x1000, 0x1000, false, true, "/usr/bin/python3"},
                                         {0x600000, 0x10000, 0x8000, true, false, "[heap]"},
                                         {kArena, 0x200000, 5 * 16384, true, false, ""},
                                         {kStack, 0x1000, 0x1000, true, false, ""}});
  writer.add_meta("small_block_bytes", "256");
  writer.add_meta("large_block_bytes", "4096");
  EXPECT_TRUE(writer.finish().ok());
  return read_snapshot(writer.bytes()).take();
}

TEST(Arenas, ArePoolsSideBySideWithOneNumber) {
  const Snapshot snapshot = process();
  const std::vector<Arena> found = arenas(snapshot);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].pools, 2U);
  EXPECT_EQ(found[0].bytes, 2U * 16384);
  EXPECT_EQ(found[0].used, 250U * 64 + 31 * 512);
  EXPECT_EQ(found[0].objects, 3U);
  EXPECT_EQ(found[0].other_blocks, 250U + 31 - 3);
  EXPECT_EQ(found[1].empty_pools, 1U);
  EXPECT_EQ(found[1].objects, 1U);
  EXPECT_EQ(found[1].other_blocks, 1U);
}

TEST(Arenas, ThatAreNearlyEmptyArePinnedByTheClassesInThem) {
  const Snapshot snapshot = process();
  const std::vector<Pinning> rows = pinning(snapshot, arenas(snapshot), 0.25);
  ASSERT_EQ(rows.size(), 1U) << "the first arena is full";
  EXPECT_EQ(snapshot.types[rows[0].type].name, "app.Session");
  EXPECT_EQ(rows[0].objects, 1U);
  EXPECT_EQ(rows[0].arenas, 1U);
  EXPECT_EQ(rows[0].alone, 1U);
}

TEST(Resident, IsExplainedPartByPart) {
  const Resident found = resident(process());
  EXPECT_EQ(found.total, 0x1000U + 0x8000 + 5 * 16384 + 0x1000);
  const auto sum = std::accumulate(found.parts.begin(), found.parts.end(), std::uint64_t{0},
                                   [](std::uint64_t all, const ResidentPart& part) { return all + part.bytes; });
  EXPECT_EQ(sum, found.total) << "nothing is lost or counted twice";
  const auto bytes = [&](std::string_view what) {
    for (const ResidentPart& part : found.parts)
      if (part.what == what) return part.bytes;
    return ~std::uint64_t{0};
  };
  EXPECT_EQ(bytes("objects, in small blocks"), 256U);
  EXPECT_EQ(bytes("other small blocks in use"), 252U * 64 + 31 * 512 - 256);
  EXPECT_EQ(bytes("free in pools"), 4U * 16384 - 252 * 64 - 31 * 512);
  EXPECT_EQ(bytes("beside pools in their mappings"), 16384U);
  EXPECT_EQ(bytes("objects, in large blocks and buffers"), 4096U);
  EXPECT_EQ(bytes("other memory of native code"), 0x8000U - 4096);
  EXPECT_EQ(bytes("program, libraries and mapped files"), 4096U);
  EXPECT_EQ(bytes("thread stacks"), 4096U);
}

TEST(Resident, LargeBlocksMayLieBesidePoolsInOneMapping) {
  // GIVEN a mapping of a pool, of a large object, and of a list in the pool whose items are a block of their own
  SnapshotWriter writer;
  const auto list = writer.add_type("list"), bytes = writer.add_type("bytes");
  writer.begin_node(list, 64 + 0x20000, 1, Address{kArena + 48});
  writer.buffer(kArena + 0x80000, 0x20000);
  writer.edge(EdgeKind::kElement, 1);
  writer.end_node();
  writer.begin_node(bytes, 0x40000, 1, Address{kArena + 16384 + 16});
  writer.end_node();
  writer.end_objects();
  writer.add_pools(std::vector<Pool>{{kArena, 64, 255, 255, 3}});
  writer.add_regions(std::vector<Region>{{0x600000, 0x10000, 0x8000, true, false, "[heap]"},
                                         {kArena, 0x200000, 16384 + 0x20000 + 0x40000 + 0x1000, true, false, ""}});
  writer.add_meta("small_block_bytes", "64");
  writer.add_meta("large_block_bytes", std::to_string(0x20000 + 0x40000 + 0x1000));
  ASSERT_TRUE(writer.finish().ok());
  const Snapshot snapshot = read_snapshot(writer.bytes()).take();
  // WHEN
  const Resident found = resident(snapshot);
  // THEN they are objects, and the heap has those only that are left
  std::map<std::string, std::uint64_t> parts;
  std::uint64_t sum = 0;
  for (const ResidentPart& part : found.parts) sum += parts[part.what] = part.bytes;
  EXPECT_EQ(parts["beside pools in their mappings"], 0x1000U);
  EXPECT_EQ(parts["objects, in large blocks and buffers"], 0x20000U + 0x40000 + 0x1000);
  EXPECT_EQ(sum, found.total);
  EXPECT_EQ(found.native, 0x7000U);
  EXPECT_EQ(region_facts(snapshot)[1].own, 0x20000U + 0x1000) << "with buffers, whose places are told one by one";
}

TEST(Resident, IsNothingWhereItIsNotKnown) {
  SnapshotWriter writer;
  ASSERT_TRUE(writer.finish().ok());
  const Snapshot snapshot = read_snapshot(writer.bytes()).take();
  EXPECT_EQ(resident(snapshot).total, 0U);
  EXPECT_TRUE(arenas(snapshot).empty());
}

}  // namespace
}  // namespace plimsoll::heap
