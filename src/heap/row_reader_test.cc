// heap/row_reader_test.cc: rows are read as they were, and of a damaged block those before the damage.
#include "heap/row_reader.h"

#include <gtest/gtest.h>

#include <random>

#include "base/chunk.h"
#include "base/varint.h"
#include "heap/snapshot_reader.h"
#include "heap/snapshot_writer.h"

namespace plimsoll::heap {
namespace {

// A file with one block of three rows, as these columns say. Numbers below 128.
std::string file_of_rows(file::Section kind, const std::vector<std::string>& columns) {
  std::string types;
  put_bytes(types, "list");
  std::string rows;
  put_varint(rows, 3);
  for (const std::string& column : columns) put_bytes(rows, column);
  std::string raw;
  put_varint(raw, static_cast<std::uint64_t>(file::Section::kTypes));
  put_bytes(raw, types);
  put_varint(raw, static_cast<std::uint64_t>(kind));
  put_bytes(raw, rows);
  std::string header{file::kMagic};
  put_u16(header, file::kMajorVersion);
  put_u16(header, file::kMinorVersion);
  return header + make_chunk(raw, file::kCompressionLevel);
}

// A column that is not as it should be, and how many rows there are before that.
struct Damage {
  std::size_t column;
  std::string bytes;
  std::size_t rows;
};
void expect_rows_before(const Damage& damage, const std::string& file) {
  const Snapshot snapshot = read_snapshot(file).take();
  EXPECT_EQ(snapshot.object_count, damage.rows) << damage.column;
  EXPECT_EQ(snapshot.address.size(), damage.rows + 3) << damage.column;
  EXPECT_EQ(snapshot.graph.size(), damage.rows + 3) << damage.column;
  EXPECT_TRUE(snapshot.weak.empty() || damage.rows > 1) << damage.column;
  EXPECT_TRUE(snapshot.hashed.empty() || snapshot.hashed.back() < damage.rows) << damage.column;
  EXPECT_LE(snapshot.generation.size(), damage.rows) << damage.column;
  EXPECT_FALSE(snapshot.complete) << damage.column;
}

TEST(RowReader, KeepsTheRowsBeforeDamage) {
  // GIVEN three lists, the first holds the second, the second itself and, weakly, the first, the third as the second:
  // types, sizes, references, addresses, shapes, kinds, three bytes of targets, names, texts, details, hashes
  const std::vector<std::string> good{std::string(3, '\0'),
                                      {98, 0, 99},
                                      "\x01\x01\x01",
                                      "\x02\x02\x02",
                                      {2, 3, 0},
                                      {0, 0, 6},
                                      {2, 0, 1, 0, 1},
                                      std::string(5, '\0'),
                                      std::string(5, '\0'),
                                      {},
                                      {},
                                      {9, 0, 3},
                                      std::string(16, 'h')};
  const Snapshot whole = read_snapshot(file_of_rows(file::Section::kObjectRows, good)).take();
  ASSERT_EQ(whole.object_count, 3U);
  EXPECT_EQ(whole.size.values(), (std::vector<std::uint64_t>{97, 97, 98, 0, 0, 0}));
  EXPECT_EQ(whole.graph.first[3], 3U);
  EXPECT_EQ(whole.weak, (std::vector<std::pair<Node, Node>>{{1, 0}, {2, 1}}));
  EXPECT_EQ(whole.address.values(), (std::vector<std::uint64_t>{16, 32, 48, 0, 0, 0}));
  EXPECT_EQ(whole.generation, (std::vector<Generation>{Generation::kOld, Generation::kOld, Generation::kOld}));
  EXPECT_EQ(whole.hashed, (std::vector<Node>{0, 1}));
  const std::vector<Damage> damages{
      {0, {0, 5, 0}, 1},                  // a type that there is not
      {1, {98, 0}, 2},                    // a column that ends early
      {3, {2, 2, '\x82'}, 2},             // a number that does
      {4, {2, 7, 0}, 1},                  // more edges than there are
      {5, {0, 0, 9}, 1},                  // a kind of edge that there is not
      {6, {2, 0, 9, 0, 1}, 1},            // an edge to before the first
      {7, std::string(4, '\0'), 2},       // fewer targets than edges
      {8, {0, 0, 0, 0, '\x80'}, 2},       // likewise
      {8, {0, 0, 0, '\xff', '\x7f'}, 2},  // and one that is too large
      {9, {}, 0},                         // (below) an edge whose name there is not
      {11, {9, 13, 3}, 1},                // details that there are not
      {12, std::string(8, 'h'), 1},       // fewer hashes than rows that have one
  };
  for (const Damage& damage : damages) {
    // WHEN one column is damaged THEN
    std::vector<std::string> columns = good;
    columns[damage.column] = damage.bytes;
    if (damage.column == 9) columns[5] = {4, 0, 6};
    expect_rows_before(damage, file_of_rows(file::Section::kObjectRows, columns));
  }
}

TEST(RowReader, KeepsTheRowsBeforeDamageInVersion1) {
  // GIVEN two lists as above, and an empty one: types, sizes, references, addresses, degrees, kinds, targets, names,
  // texts
  const std::vector<std::string> good{
      std::string(3, '\0'), "abc", "\x01\x01\x01", "\x02\x02\x02", {1, 2, 0}, {0, 0, 6}, {2, 0, 1}, {}, {}};
  const Snapshot whole = read_snapshot(file_of_rows(file::Section::kObjects, good)).take();
  ASSERT_EQ(whole.object_count, 3U);
  EXPECT_EQ(whole.graph.first[3], 2U);
  EXPECT_EQ(whole.weak, (std::vector<std::pair<Node, Node>>{{1, 0}}));
  const std::vector<Damage> damages{
      {0, {0, 5, 0}, 1},       // a type that there is not
      {1, "ab", 2},            // a column that ends early
      {3, {2, 2, '\x82'}, 2},  // a number that does
      {4, {1, 7, 0}, 1},       // more edges than there are
      {5, {0, 0, 9}, 1},       // a kind of edge that there is not
      {6, {2, 0, 9}, 1},       // an edge to before the first
      {7, {}, 0},              // (below) an edge whose name there is not
  };
  for (const Damage& damage : damages) {
    // WHEN one column is damaged THEN
    std::vector<std::string> columns = good;
    columns[damage.column] = damage.bytes;
    if (damage.column == 7) columns[5] = {4, 0, 6};
    expect_rows_before(damage, file_of_rows(file::Section::kObjects, columns));
  }
}

// How an object's edges are to be, in a file of many: kinds, and for kNamed a name of ten.
using EdgesOfRow = std::vector<std::pair<EdgeKind, std::uint32_t>>;

// Edges that are mostly, but not always, those of the row of the type before.
std::vector<EdgesOfRow> edges_of_many_rows(std::size_t types, std::size_t count) {
  std::mt19937 engine(2005);
  const auto random = [&](std::size_t below) { return engine() % below; };
  std::vector<EdgesOfRow> usual(types);
  std::vector<EdgesOfRow> rows;
  for (std::size_t i = 0; i < count; ++i) {
    EdgesOfRow& row = usual[i % types];
    switch (random(12)) {
      case 0: row.clear(); break;
      case 1: row.resize(random(3)); break;
      case 2: row.resize(file::kLongestPattern - 1 + random(4), {EdgeKind::kElement, 0}); break;
      case 3: row.emplace_back(EdgeKind::kType, 0); break;
      case 4: row.emplace_back(EdgeKind::kNamed, random(10)); break;
      case 5: row.emplace_back(EdgeKind::kWeak, 0); break;
      case 6:
        if (!row.empty()) row[random(row.size())] = {EdgeKind::kNamed, random(10)};
        break;
      default: break;
    }
    rows.push_back(row);
  }
  return rows;
}

TEST(RowReader, ReadsRowsThatAreLikeOthersAndRowsThatAreNot) {
  // GIVEN many objects of three types, with edges as above
  constexpr Node kObjects = 70'000;
  const std::vector<EdgesOfRow> rows = edges_of_many_rows(3, kObjects);
  const auto target = [](Node node, std::size_t edge) { return static_cast<Node>((node * 7919ULL + edge) % kObjects); };
  SnapshotWriter writer;
  for (const char* type : {"a", "b", "c"}) writer.add_class(writer.add_type(type), 1);
  for (unsigned i = 0; i < 10; ++i) writer.add_name(std::to_string(i));
  for (Node node = 0; node < kObjects; ++node) {
    writer.begin_node(node % 3, 16 + node / 1000 * 8, 1, Address{0x1000 + node * std::uint64_t{16}});
    writer.generation(static_cast<Generation>(node / 100 % kGenerationCount));
    if (node % 3 == 1 && node % 1000 != 1) writer.content_hash(node);
    for (std::size_t i = 0; i < rows[node].size(); ++i) {
      const auto& [kind, name] = rows[node][i];
      if (kind == EdgeKind::kType)
        writer.edge_to_type();
      else if (kind == EdgeKind::kNamed)
        writer.named_edge(target(node, i), name);
      else
        writer.edge(kind, target(node, i));
    }
    writer.end_node();
  }
  ASSERT_TRUE(writer.finish().ok());
  // WHEN
  const Snapshot snapshot = read_snapshot(writer.bytes()).take();
  // THEN
  ASSERT_TRUE(snapshot.complete);
  std::uint32_t edge = 0;
  std::size_t weak = 0;
  std::size_t hashed = 0;
  for (Node node = 0; node < kObjects; ++node) {
    ASSERT_EQ(snapshot.size[node], 16U + node / 1000 * 8);
    ASSERT_EQ(snapshot.generation[node], static_cast<Generation>(node / 100 % kGenerationCount));
    if (node % 3 == 1 && node % 1000 != 1) {
      ASSERT_EQ(snapshot.hashed[hashed], node);
      ASSERT_EQ(snapshot.hash[hashed++], node);
    }
    for (std::size_t i = 0; i < rows[node].size(); ++i) {
      const auto& [kind, name] = rows[node][i];
      if (kind == EdgeKind::kWeak) {
        ASSERT_EQ(snapshot.weak[weak++], std::pair(node, target(node, i)));
        continue;
      }
      ASSERT_EQ(snapshot.kind[edge], kind);
      ASSERT_EQ(snapshot.name[edge], kind == EdgeKind::kNamed ? name : 0);
      ASSERT_EQ(snapshot.graph.targets[edge++], kind == EdgeKind::kType ? 1 : target(node, i));
    }
    ASSERT_EQ(snapshot.graph.first[node + 1], edge);
  }
  EXPECT_EQ(hashed, snapshot.hashed.size());
  EXPECT_EQ(weak, snapshot.weak.size());
}

}  // namespace
}  // namespace plimsoll::heap
