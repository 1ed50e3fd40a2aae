// formats/heapsnapshot/writer_test.cc: the rules that DevTools' loader has and does not forgive.
#include "formats/heapsnapshot/writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <map>
#include <set>

#include "heap/snapshot_testing.h"

namespace plimsoll::formats::heapsnapshot {
namespace {

using boost::json::array;
using boost::json::object;
using heap::testing::SnapshotDrawing;

const char* const kHeap = R"(
  ns: dict 200  key>list
  key: str 50
  list: list 72  node node
  node: app.Node 48  next=big
  big: bytes 5000000000
  ref: weakref 72  ~node
  modules: [modules] 0  app=ns
)";

// A file, with its nodes and edges as rows.
struct File {
  explicit File(const std::string& bytes) : json(boost::json::parse(bytes).as_object()) {
    const array& numbers = json["nodes"].as_array();
    for (std::size_t i = 0; i < numbers.size(); i += 7) {
      std::vector<std::int64_t> row;
      for (std::size_t k = 0; k < 7; ++k) row.push_back(numbers[i + k].as_int64());
      nodes.push_back(row);
    }
    for (const auto& number : json["edges"].as_array()) edges.push_back(number.as_int64());
  }
  std::string text(std::int64_t i) {
    return json["strings"].as_array()[static_cast<std::size_t>(i)].as_string().c_str();
  }
  std::size_t node_named(const std::string& name) {
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (text(nodes[i][1]) == name) return i;
    return nodes.size();
  }
  // "app>dict list[0]>app.Node": type, name and target of a node's edges.
  std::vector<std::string> edges_of(std::size_t node) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < node; ++i) at += static_cast<std::size_t>(nodes[i][4]) * 3;
    std::vector<std::string> out;
    for (std::int64_t i = 0; i < nodes[node][4]; ++i, at += 3) {
      const std::string name = edges[at] == 1 ? std::to_string(edges[at + 1]) : text(edges[at + 1]);
      const auto target = static_cast<std::size_t>(edges[at + 2] / 7);
      EXPECT_EQ(edges[at + 2] % 7, 0);
      out.push_back(std::to_string(edges[at]) + " " + name + " " + text(nodes[target][1]));
    }
    return out;
  }
  object json;
  std::vector<std::vector<std::int64_t>> nodes;
  std::vector<std::int64_t> edges;
};

TEST(HeapSnapshotWriter, KeysComeInTheOrderOfTheLoader) {
  const File file(write(SnapshotDrawing(kHeap).snapshot()));
  std::vector<std::string> keys;
  for (const auto& entry : file.json) keys.emplace_back(entry.key());
  EXPECT_EQ(keys, (std::vector<std::string>{"snapshot", "nodes", "edges", "trace_function_infos", "trace_tree",
                                            "samples", "locations", "strings"}));
}

TEST(HeapSnapshotWriter, CountsMatchAndTheRootIsFirst) {
  File file(write(SnapshotDrawing(kHeap).snapshot()));
  const object& head = file.json["snapshot"].as_object();
  EXPECT_EQ(head.at("node_count").as_int64(), static_cast<std::int64_t>(file.nodes.size()));
  std::int64_t edges = 0;
  for (const auto& node : file.nodes) edges += node[4];
  EXPECT_EQ(head.at("edge_count").as_int64(), edges);
  EXPECT_EQ(file.edges.size(), static_cast<std::size_t>(edges) * 3);
  EXPECT_EQ(file.nodes[0][0], 9) << "synthetic";
  EXPECT_EQ(file.nodes[0][2], 1);
  for (const std::string& edge : file.edges_of(0)) EXPECT_EQ(edge[0], '1') << "elements only: " << edge;
}

TEST(HeapSnapshotWriter, EdgesHaveTheirNames) {
  File file(write(SnapshotDrawing(kHeap).snapshot()));
  EXPECT_EQ(file.edges_of(file.node_named("[modules]")), std::vector<std::string>{"2 app dict"});
  EXPECT_EQ(file.edges_of(file.node_named("dict")), (std::vector<std::string>{"3 key str", "2 value list"}));
  EXPECT_EQ(file.edges_of(file.node_named("list")), (std::vector<std::string>{"1 0 app.Node", "1 1 app.Node"}));
  EXPECT_EQ(file.edges_of(file.node_named("weakref")), std::vector<std::string>{"6 weak app.Node"});
}

TEST(HeapSnapshotWriter, IdsAreOddUniqueAndFollowTheAddress) {
  File file(write(SnapshotDrawing(kHeap).snapshot()));
  std::set<std::int64_t> ids;
  for (const auto& node : file.nodes) {
    EXPECT_TRUE(ids.insert(node[2]).second) << node[2];
    EXPECT_LT(node[2], std::int64_t{1} << 32);
  }
  File again(write(SnapshotDrawing(std::string(kHeap) + "  threads: [threads] 0  ns\n").snapshot()));
  EXPECT_EQ(file.nodes[file.node_named("list")][2], again.nodes[again.node_named("list")][2]);
}

TEST(HeapSnapshotWriter, SizesBeyond32BitsAreShownInParts) {
  File file(write(SnapshotDrawing(kHeap).snapshot()));
  std::int64_t size = file.nodes[file.node_named("bytes")][3];
  for (const auto& node : file.nodes) {
    EXPECT_LT(node[3], std::int64_t{1} << 32);
    if (file.text(node[1]) == "(part of a buffer)") size += node[3];
  }
  EXPECT_EQ(size, 5'000'000'000);
  EXPECT_EQ(file.edges_of(file.node_named("bytes")).size(), 2U);
}

// The nodes of a trace tree by their ids: the names of the functions on the way, and how many objects.
void collect(File& file, const array& level, const std::string& above,
             std::map<std::int64_t, std::pair<std::string, std::int64_t>>& out, std::size_t depth,
             std::size_t& deepest) {
  deepest = std::max(deepest, depth);
  for (std::size_t i = 0; i < level.size(); i += 5) {
    const auto function = static_cast<std::size_t>(level[i + 1].as_int64());
    const array& infos = file.json["trace_function_infos"].as_array();
    const std::string words = above + file.text(infos[function * 6 + 1].as_int64()) + ":" +
                              std::to_string(infos[function * 6 + 4].as_int64());
    out[level[i].as_int64()] = {words, level[i + 2].as_int64()};
    collect(file, level[i + 4].as_array(), words + " ", out, depth + 1, deepest);
  }
}

TEST(HeapSnapshotWriter, AllocationStacksAreATree) {
  // GIVEN
  File file(write(SnapshotDrawing(R"(
    list: list 72  a b c  @main:1
    a: app.A 48  @main:1/load:5
    b: app.B 48  @main:1/load:5
    c: app.C 48
    modules: [modules] 0  app=list
  )")
                      .snapshot()));
  // THEN each object names its stack
  std::map<std::int64_t, std::pair<std::string, std::int64_t>> nodes;
  std::size_t deepest = 0;
  collect(file, file.json["trace_tree"].as_array(), "", nodes, 1, deepest);
  const auto trace = [&](const char* name) { return file.nodes[file.node_named(name)][5]; };
  EXPECT_EQ(nodes[trace("app.A")], std::pair(std::string("(root):0 main:1 load:5"), std::int64_t{2}));
  EXPECT_EQ(trace("app.B"), trace("app.A"));
  EXPECT_EQ(nodes[trace("list")], std::pair(std::string("(root):0 main:1"), std::int64_t{1}));
  EXPECT_EQ(trace("app.C"), 0);
  EXPECT_EQ(file.json["snapshot"].as_object()["trace_function_count"].as_int64(), 3);
}

TEST(HeapSnapshotWriter, VeryDeepStacksDoNotNestTooDeep) {
  // GIVEN a stack deeper than the loader can go down
  std::string frames;
  for (int i = 1; i <= 3000; ++i) frames += (i == 1 ? "f:" : "/f:") + std::to_string(i);
  heap::Snapshot snapshot = SnapshotDrawing("a: app.A 48  @" + frames + "\n m: [modules] 0  a=a").snapshot();
  const std::string bytes = write(snapshot);
  // THEN
  std::size_t depth = 0;
  std::size_t deepest = 0;
  for (const char each : bytes.substr(bytes.find("\"trace_tree\""))) {
    if (each == '[') deepest = std::max(deepest, ++depth);
    if (each == ']') --depth;
  }
  EXPECT_LE(deepest, 1010U);
  EXPECT_NE(bytes.find(",3000,"), std::string::npos) << "the innermost frame is there";
}

}  // namespace
}  // namespace plimsoll::formats::heapsnapshot
