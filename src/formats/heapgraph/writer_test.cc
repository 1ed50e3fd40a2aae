// formats/heapgraph/writer_test.cc: drawn heaps as Perfetto's heap graphs, read back with protozero.
#include "formats/heapgraph/writer.h"

#include <gtest/gtest.h>

#include <map>
#include <protozero/pbf_message.hpp>
#include <set>

#include "formats/heapgraph/fields.h"
#include "heap/snapshot_testing.h"

namespace plimsoll::formats::heapgraph {
namespace {

using protozero::pbf_message;

const char* const kHeap = R"(
  ns: dict 200  key>list
  key: str 50
  list: list 72  node node
  node: app.Node 48  next=big
  big: bytes 5000000000
  modules: [modules] 0  app=ns
)";

// A file as its reader sees it.
struct Decoded {
  struct Object {
    std::uint64_t type = 0, size = 0;
    std::vector<std::uint64_t> fields, held;
  };
  std::map<std::uint64_t, Object> objects;
  std::map<std::uint64_t, std::string> types, names;
  std::vector<std::pair<int, std::uint64_t>> roots;
  std::vector<bool> continued;

  explicit Decoded(const std::string& bytes) {
    pbf_message<TraceField> trace(bytes);
    while (trace.next(TraceField::kPacket)) {
      pbf_message<PacketField> packet = trace.get_message();
      while (packet.next())
        if (packet.tag() == PacketField::kHeapGraph)
          graph(packet.get_message());
        else
          packet.skip();
    }
  }
  void graph(pbf_message<GraphField> graph) {
    while (graph.next()) switch (graph.tag()) {
        case GraphField::kObject: object(graph.get_message()); break;
        case GraphField::kFieldName: text<InternedField>(graph.get_message(), names); break;
        case GraphField::kType: text<TypeField>(graph.get_message(), types); break;
        case GraphField::kRoot: root(graph.get_message()); break;
        case GraphField::kContinued: continued.push_back(graph.get_bool()); break;
        default: graph.skip();
      }
  }
  void object(pbf_message<ObjectField> message) {
    std::uint64_t id = 0;
    Object made;
    while (message.next()) switch (message.tag()) {
        case ObjectField::kId: id = message.get_uint64(); break;
        case ObjectField::kTypeId: made.type = message.get_uint64(); break;
        case ObjectField::kSelfSize: made.size = message.get_uint64(); break;
        case ObjectField::kFieldIds:
          for (const std::uint64_t each : message.get_packed_uint64()) made.fields.push_back(each);
          break;
        case ObjectField::kObjectIds:
          for (const std::uint64_t each : message.get_packed_uint64()) made.held.push_back(each);
          break;
      }
    objects[id] = made;
  }
  void root(pbf_message<RootField> message) {
    std::pair<int, std::uint64_t> made;
    while (message.next()) {
      if (message.tag() == RootField::kKind)
        made.first = message.get_enum();
      else
        made.second = *message.get_packed_uint64().begin();
    }
    roots.push_back(made);
  }
  template <typename Field>
  static void text(pbf_message<Field> message, std::map<std::uint64_t, std::string>& into) {
    std::uint64_t id = 0;
    while (message.next()) {
      if (message.tag() == Field::kId)
        id = message.get_uint64();
      else
        into[id] = message.get_string();
    }
  }
};

TEST(HeapGraph, HasObjectsWithSizesClassesAndNamedReferences) {
  const heap::testing::SnapshotDrawing drawing(kHeap);
  Decoded file(write(drawing.snapshot()));
  const auto id = [&](const char* name) { return std::uint64_t{drawing[name]} + 1; };
  EXPECT_EQ(file.types[file.objects[id("node")].type], "app.Node");
  EXPECT_EQ(file.objects[id("big")].size, 5'000'000'000U);
  EXPECT_EQ(file.objects[id("list")].held, (std::vector<std::uint64_t>{id("node"), id("node")}));
  ASSERT_EQ(file.objects[id("node")].fields.size(), 1U);
  EXPECT_EQ(file.names[file.objects[id("node")].fields[0]], "app.Node.next");
  EXPECT_EQ(file.names[file.objects[id("ns")].fields[0]], "key");
  EXPECT_EQ(file.continued, std::vector<bool>{false});
  std::set<std::pair<int, std::uint64_t>> roots(file.roots.begin(), file.roots.end());
  EXPECT_TRUE(roots.contains({kModuleRoot, id("modules")}));
  for (const auto& [number, object] : file.objects)
    for (const std::uint64_t held : object.held) EXPECT_TRUE(file.objects.contains(held)) << number;
}

TEST(HeapGraph, GarbageHasNoRoot) {
  // GIVEN a cycle that nobody holds
  const heap::testing::SnapshotDrawing drawing("a: list 64  b\n b: list 64  a\n m: [modules] 0\n");
  const Decoded file(write(drawing.snapshot()));
  std::set<std::uint64_t> reached;
  std::vector<std::uint64_t> open;
  for (const auto& [kind, number] : file.roots) open.push_back(number);
  while (!open.empty()) {
    const std::uint64_t number = open.back();
    open.pop_back();
    if (!reached.insert(number).second) continue;
    const auto& held = file.objects.at(number).held;
    open.insert(open.end(), held.begin(), held.end());
  }
  EXPECT_FALSE(reached.contains(std::uint64_t{drawing["a"]} + 1));
  EXPECT_TRUE(file.objects.contains(std::uint64_t{drawing["a"]} + 1)) << "but it is there";
}

TEST(HeapGraph, IsWrittenInParts) {
  std::string text;
  for (int i = 0; i < 60'000; ++i) text += "o" + std::to_string(i) + ": str 5000000000\n";
  const heap::testing::SnapshotDrawing drawing(text);
  const Decoded file(write(drawing.snapshot()));
  ASSERT_GE(file.continued.size(), 1U);
  EXPECT_FALSE(file.continued.back());
  for (std::size_t i = 0; i + 1 < file.continued.size(); ++i) EXPECT_TRUE(file.continued[i]);
  EXPECT_EQ(file.objects.size(), 60'000U + 1) << "and [native code]";
}

}  // namespace
}  // namespace plimsoll::formats::heapgraph
