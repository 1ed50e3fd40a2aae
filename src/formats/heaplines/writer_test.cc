// formats/heaplines/writer_test.cc: drawn heaps as lines of JSON.
#include "formats/heaplines/writer.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <sstream>

#include "formats/heap_formats.h"
#include "heap/snapshot_testing.h"

namespace plimsoll::formats::heaplines {
namespace {

TEST(HeapLines, HaveAnObjectEach) {
  const heap::testing::SnapshotDrawing drawing(
      "ns: dict 200  key>list\n key: str 50\n list: list 72  key ~ns\n m: [modules] 0  app=ns\n");
  std::istringstream lines(write(drawing.snapshot()));
  std::vector<boost::json::object> rows;
  for (std::string line; std::getline(lines, line);) rows.push_back(boost::json::parse(line).as_object());
  ASSERT_EQ(rows.size(), 1U + 4 + 3) << "the facts, nodes, and what reading adds";
  EXPECT_EQ(rows[0]["objects"], 3);
  EXPECT_EQ(rows[0]["complete"], true);
  EXPECT_EQ(rows[1]["type"], "dict");
  EXPECT_EQ(rows[1]["address"], "0x1000");
  EXPECT_EQ(rows[1]["size"], 200);
  EXPECT_EQ(serialize(rows[1]["edges"]), R"([[1,"key"],[2,"value"]])");
  EXPECT_EQ(serialize(rows[3]["edges"]), R"([[1,"element"],[0,"weak"]])");
  EXPECT_EQ(serialize(rows[4]["edges"]), R"([[0,"attribute","app"]])");
  EXPECT_FALSE(rows[4].contains("address")) << "a root";
}

TEST(HeapFormats, AreKnownByNameAndByHowAFileIsCalled) {
  EXPECT_EQ(heap_format_named("perfetto"), HeapFormat::kPerfetto);
  EXPECT_EQ(heap_format_named("hprof"), std::nullopt);
  EXPECT_EQ(heap_format_of("/x/y.pftrace"), HeapFormat::kPerfetto);
  EXPECT_EQ(heap_format_of("y.jsonl"), HeapFormat::kLines);
  EXPECT_EQ(heap_format_of("y.heapsnapshot"), HeapFormat::kHeapSnapshot);
  EXPECT_EQ(heap_format_of("y.heap"), std::nullopt);
}

}  // namespace
}  // namespace plimsoll::formats::heaplines
