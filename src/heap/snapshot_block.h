// heap/snapshot_block.h: rows of a snapshot that go to the file together.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heap/column_bytes.h"
#include "heap/graph.h"
#include "heap/snapshot_format.h"

namespace plimsoll::heap {

void put_section(std::string& out, file::Section kind, std::string_view payload);

// A part of a chunk: some bytes, then all of a column, if it names one.
struct ChunkPart {
  static constexpr std::size_t kNoColumn = static_cast<std::size_t>(-1);
  std::string bytes;
  std::size_t column = kNoColumn;
};

// What SnapshotWriter collects before it goes to the file: rows of objects or of other nodes, in columns, and the types
// and names that are new with them.
struct SnapshotBlock {
  // Those of the rows, in the order of the file, and those of the rows whose allocation is known.
  enum Column : std::size_t {
    kTypes,
    kSizes,
    kRefcounts,
    kAddresses,
    kShapes,
    kKinds,
    kLowTargets,
    kMiddleTargets,
    kHighTargets,
    kNames,
    kTexts,
    kDetails,
    kHashes,
    kAllocatedRows,
    kAllocatedBy,
    kColumnCount
  };

  std::string new_types, new_names, buffers;
  std::array<ColumnBytes, kColumnCount> columns;
  bool are_objects = true;
  Node first_row = 0;
  std::size_t rows = 0;

  // The sections of the file that it is; none if there is nothing in it. The columns' sink has all of them.
  [[nodiscard]] std::vector<ChunkPart> sections() const;
  void clear();

 private:
  // A section of a few numbers, and columns with their lengths.
  void add_columns(std::vector<ChunkPart>& out, file::Section kind, std::initializer_list<std::uint64_t> numbers,
                   std::span<const Column> which) const;
};

}  // namespace plimsoll::heap
