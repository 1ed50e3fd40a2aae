// heap/row_reader.h: blocks of rows of a snapshot file -> columns of a Snapshot. docs/heap-format.md, "A block of
// rows".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/varint.h"
#include "heap/edge_reader.h"
#include "heap/snapshot.h"
#include "heap/snapshot_format.h"

namespace plimsoll::heap {

// Appends rows to a Snapshot, from bytes that may be hostile. Columns of nodes and of edges have one length each after
// every call, also if there was damage: then the rows before it are kept. Targets of edges may be beyond all nodes.
class RowReader {
 public:
  explicit RowReader(Snapshot& snapshot) : snapshot_(snapshot), edges_(snapshot) {}
  // From now on edges are read beside. Then what was read is of no use if anything is false.
  EdgeReader& edges() { return edges_; }

  // How many bytes of all that there will be have been read: by that it knows how much room to make.
  void progress(std::uint64_t read, std::uint64_t expected) {
    room_ = {static_cast<double>(read) / static_cast<double>(expected), expected};
  }
  // A block. False if something in it cannot be.
  bool rows(VarintCursor& cursor);
  // Likewise of version 1, whose details stand in a section of their own.
  bool rows_of_version_1(VarintCursor& cursor);
  bool details_of_version_1(VarintCursor& cursor);

 private:
  // What the next row of a type is most likely to have.
  struct TypeRows {
    std::uint64_t size = 0;
    std::uint32_t block = 0;  // of which all else is
    std::uint8_t details = file::kNoDetails;
  };
  // The columns of a block.
  struct Columns;
  struct ColumnsOfVersion1;

  TypeRows& rows_of_type(std::uint32_t type) {
    TypeRows& rows = by_type_[type];
    if (rows.block != block_) rows = {0, block_, file::kNoDetails};
    return rows;
  }
  void begin_block();
  void cut(std::size_t nodes);
  std::size_t types(VarintCursor numbers, std::size_t rows);
  std::size_t addresses(VarintCursor numbers, std::size_t rows);
  std::size_t refcounts(VarintCursor numbers, std::size_t rows);
  std::size_t details(std::string_view details, VarintCursor hashes, Node first, std::size_t rows);
  void names(VarintCursor numbers);
  [[nodiscard]] EdgeRows edge_rows(Node first, std::size_t rows, std::size_t most_edges) const;
  bool texts(VarintCursor& cursor, Node first);
  bool put_hash(Node node, VarintCursor& hashes);
  void put_generation(Node node, Generation generation);

  template <typename T, typename Convert>
  std::size_t append(std::vector<T>& column, VarintCursor numbers, std::size_t rows, Convert convert);
  template <typename Convert>
  std::size_t append(WideColumn& column, VarintCursor numbers, std::size_t rows, Convert convert);

  Snapshot& snapshot_;
  EdgeReader edges_;
  ColumnRoom room_;
  std::uint64_t most_edges_ = 0;      // that all blocks may have, if they are read beside
  std::uint32_t block_ = 0;           // its number, from 1 on
  std::vector<TypeRows> by_type_;     // in the block
  std::vector<std::uint32_t> names_;  // of the block
};

}  // namespace plimsoll::heap
