// heap/edge_reader_test.cc: a file is read as the same by two threads as by one, also where it is damaged.
#include "heap/edge_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/chunk.h"
#include "base/varint.h"
#include "heap/snapshot_format.h"
#include "heap/snapshot_reader.h"

namespace plimsoll::heap {
namespace {

// The raw bytes of a chunk with three lists, of which the first holds the second, the second itself and, weakly, the
// first, the third as the second; with a type of its own and a name.
std::string chunk_of_rows() {
  const auto section = [](file::Section kind, const std::string& payload) {
    std::string out;
    put_varint(out, static_cast<std::uint64_t>(kind));
    put_bytes(out, payload);
    return out;
  };
  std::string word;
  put_bytes(word, "list");
  // Types, sizes, references, addresses, shapes, kinds, three bytes of targets, names, texts, details, hashes.
  const std::vector<std::string> columns{
      std::string(3, '\0'), {98, 0, 99},     "\x01\x01\x01",       "\x02\x02\x02",       {3, 3, 0},
      {4, 5, 0, 6},         {2, 0, 1, 0, 1}, std::string(5, '\0'), std::string(5, '\0'), std::string(1, '\0'),
      {1, 1, 'x'},          {9, 0, 3},       std::string(16, 'h')};
  std::string rows;
  put_varint(rows, 3);
  for (const std::string& column : columns) put_bytes(rows, column);
  return section(file::Section::kTypes, word) + section(file::Section::kNames, word) +
         section(file::Section::kObjectRows, rows) + section(file::Section::kClasses, {0, 1});
}

std::string file_of(const std::vector<std::string>& chunks) {
  std::string file{file::kMagic};
  put_u16(file, file::kMajorVersion);
  put_u16(file, file::kMinorVersion);
  for (const std::string& raw : chunks) file += make_chunk(raw, file::kCompressionLevel);
  return file;
}

void expect_same(const std::string& file, const std::string& what) {
  const Snapshot one = read_snapshot(file, ReadBeside::kNever).take();
  const Snapshot two = read_snapshot(file, ReadBeside::kAlways).take();
  EXPECT_EQ(one.complete, two.complete) << what;
  EXPECT_EQ(one.object_count, two.object_count) << what;
  EXPECT_EQ(one.lost_edges, two.lost_edges) << what;
  EXPECT_EQ(one.type, two.type) << what;
  EXPECT_EQ(one.types.size(), two.types.size()) << what;
  EXPECT_EQ(one.names, two.names) << what;
  EXPECT_EQ(one.size.values(), two.size.values()) << what;
  EXPECT_EQ(one.address.values(), two.address.values()) << what;
  EXPECT_EQ(one.refcount, two.refcount) << what;
  EXPECT_EQ(one.graph.first, two.graph.first) << what;
  EXPECT_EQ(one.graph.targets, two.graph.targets) << what;
  EXPECT_EQ(one.kind, two.kind) << what;
  EXPECT_EQ(one.name, two.name) << what;
  EXPECT_EQ(one.weak, two.weak) << what;
  EXPECT_EQ(one.generation, two.generation) << what;
  EXPECT_EQ(one.hashed, two.hashed) << what;
  EXPECT_EQ(one.hash, two.hash) << what;
  EXPECT_EQ(one.texts, two.texts) << what;
  EXPECT_EQ(one.text_node, two.text_node) << what;
}

TEST(EdgeReader, ReadsTheSameBeside) {
  const std::string file = file_of(std::vector<std::string>(20, chunk_of_rows()));
  EXPECT_EQ(read_snapshot(file, ReadBeside::kAlways).value().object_count, 60U);
  EXPECT_EQ(read_snapshot(file, ReadBeside::kAlways).value().graph.first[60], 20U * 4U);
  expect_same(file, "whole");
}

TEST(EdgeReader, KeepsTheSameOfAFileThatIsCut) {
  const std::string file = file_of(std::vector<std::string>(6, chunk_of_rows()));
  for (std::size_t size = file::kFileHeaderSize; size < file.size(); size += 3)
    expect_same(file.substr(0, size), std::to_string(size));
}

TEST(EdgeReader, KeepsTheSameBeforeDamage) {
  // GIVEN chunks one of which is damaged, with checksums as if it were meant
  const std::string raw = chunk_of_rows();
  for (std::size_t at = 0; at < raw.size(); ++at)
    for (const char bits : {'\x01', '\x15', '\xff'}) {
      std::vector<std::string> chunks(5, raw);
      chunks[2][at] = static_cast<char>(chunks[2][at] ^ bits);
      // WHEN it is read by two threads THEN
      expect_same(file_of(chunks), std::to_string(at) + " " + std::to_string(bits));
    }
}

}  // namespace
}  // namespace plimsoll::heap
