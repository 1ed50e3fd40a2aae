// heap/snapshot_writer.h: a snapshot goes to disk while it is taken; nothing of it stays in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "base/varint.h"
#include "heap/snapshot.h"
#include "heap/snapshot_block.h"
#include "heap/snapshot_file.h"
#include "heap/snapshot_format.h"

namespace plimsoll::heap {

// Writes types and names as they turn up, then objects in the order of their numbers, then other nodes, then finish.
// A write that fails is told of by finish.
class SnapshotWriter {
 public:
  // Makes the file, readable for its owner only. A symbolic link is not followed.
  static Result<SnapshotWriter> create(const std::string& path);
  // Keeps the bytes instead, for tests.
  SnapshotWriter() : SnapshotWriter(UniqueFd{}) {}
  // From now on a thread of its own compresses and writes, so that the rows are made in less time. Not before a fork
  // whose child goes on with this.
  void write_beside() { file_->write_beside(); }
  // Does a part of that thread's work; false if there is none. For any thread that would wait otherwise.
  bool help() noexcept { return file_->help(); }

  // The number of a type, or of the name of an edge; the caller sees to it that each is added once.
  std::uint32_t add_type(std::string_view name);
  std::uint32_t add_name(std::string_view name);

  // One node: begin, its edges, end.
  void begin_node(std::uint32_t type, std::uint64_t size, std::uint32_t refcount, Address address);
  void edge(EdgeKind kind, Node target) { put_edge(kind, target); }
  void edge_to_type() { put_edge(EdgeKind::kType, node_); }
  void named_edge(Node target, std::uint32_t name);
  void text(std::string_view text);
  // Of an object; see Snapshot.
  void content_hash(std::uint64_t hash) {
    column(Column::kHashes).word(hash);
    has_hash_ = true;
  }
  // Of an object: the number of the stack that allocated it, as add_stacks will tell.
  void allocated_by(std::uint32_t stack);
  // Of an object: memory outside Python that is its own, and that its size has.
  void buffer(std::uint64_t start, std::uint64_t size);
  void generation(Generation generation) { generation_ = generation; }
  void end_node();
  // The nodes after this are no objects.
  void end_objects();

  void add_class(std::uint32_t type, Node object);
  void add_meta(std::string_view name, std::string_view value);
  // After the last object.
  void add_pools(std::span<const Pool> pools);
  void add_regions(std::span<const Region> regions);
  // `stack_of` by the numbers that allocated_by was given: a stack of `stacks`, or kNone.
  void add_stacks(const AllocationStacks& stacks, const std::vector<std::uint32_t>& stack_of);
  void count_lost_edge() { ++lost_edges_; }
  // If that fails, the file is removed, and one that was there before stays.
  Status finish();
  // Removes what was written so far: nobody will finish it. Only if the file is ours, and still has that name.
  void discard() const { file_->remove(written_at_); }

  [[nodiscard]] Node node_count() const { return node_; }
  [[nodiscard]] std::uint64_t edge_count() const { return edges_; }
  [[nodiscard]] std::uint64_t lost_edge_count() const { return lost_edges_; }
  [[nodiscard]] std::uint64_t file_bytes() const { return file_->size(); }
  // What was written, if there is no file.
  [[nodiscard]] const std::string& bytes() const { return file_->bytes(); }

 private:
  using Column = SnapshotBlock::Column;
  // Rows of a section, and bytes of its edges or texts: whichever is reached first ends it. With the largest row, one
  // object that holds a hundred million others, a chunk would be too large; end_node checks bytes as edges come.
  static constexpr std::size_t kFullBlock = 1U << 16U;
  static constexpr std::size_t kFullColumn = std::size_t{2} << 20U;
  // What the next row of a type is most likely to have: as the last one in the block.
  struct TypeRows {
    std::uint32_t block = 0;  // of which all else is
    std::uint8_t details = file::kNoDetails;
    std::uint64_t size = 0;
    std::vector<EdgeKind> kinds;  // of edges
    std::vector<std::uint32_t> names;
  };
  explicit SnapshotWriter(UniqueFd fd);

  ColumnBytes& column(Column which) { return block_.columns[which]; }
  TypeRows& rows_of_type(std::uint32_t type) {
    if (type >= by_type_.size()) by_type_.resize(types_);
    TypeRows& rows = by_type_[type];
    if (rows.block != block_number_) begin_rows(rows);
    return rows;
  }
  void begin_rows(TypeRows& rows) const;
  void put_edge(EdgeKind kind, Node target);
  void put_kind(EdgeKind kind) {
    ++edges_;
    if (!has_own_shape_ && degree_ < usual_->kinds.size() && usual_->kinds[degree_] == kind)
      ++degree_;
    else
      put_own_kind(kind);
  }
  void put_own_kind(EdgeKind kind);
  void put_own_name(std::uint32_t name);
  void give_own_shape();
  void forget_usual();
  void end_block();

  std::string path_, written_at_;  // until it is whole, it is beside a file that it will replace
  std::unique_ptr<SnapshotFile> file_;
  SnapshotBlock block_;  // the rows since the last one that went to the file
  std::string classes_, meta_, memory_;
  std::uint32_t types_ = 0, names_ = 0;
  std::vector<TypeRows> by_type_;  // in the block, by type
  std::uint32_t block_number_ = 0;
  // Of the row: its type's, how many edges it has, and how many of them have names; whether they are as those of the
  // row before, so far, and whether they may be those of rows to come.
  TypeRows* usual_ = nullptr;
  std::uint32_t degree_ = 0, named_ = 0;
  bool has_own_shape_ = false, is_pattern_ = true;
  bool has_hash_ = false;
  Generation generation_ = Generation::kUnknown;
  std::size_t allocated_row_ = 0;  // the row after the last one with a stack
  std::size_t text_row_ = 0;       // the row after the last one with a text
  std::uint64_t address_ = 0;      // of the row before
  Node buffer_owner_ = 0;          // of the last buffer
  Node node_ = 0;
  Node objects_ = kNoNode;  // set by end_objects
  std::uint64_t edges_ = 0, lost_edges_ = 0;
};

// What is done for each row and each edge stands here, so that it becomes one piece with whoever has them.

inline void SnapshotWriter::begin_node(std::uint32_t type, std::uint64_t size, std::uint32_t refcount,
                                       Address address) {
  usual_ = &rows_of_type(type);
  column(Column::kTypes).number(type);
  column(Column::kSizes).number(usual_->size == size ? 0 : size + 1);
  usual_->size = size;
  column(Column::kRefcounts).number(refcount);
  column(Column::kAddresses).number((raw(address) - address_) / 8);
  address_ = raw(address);
}

inline void SnapshotWriter::put_edge(EdgeKind kind, Node target) {
  put_kind(kind);
  if (kind == EdgeKind::kType) return;
  const std::uint64_t step = zigzag(std::int64_t{target} - std::int64_t{node_});
  column(Column::kLowTargets).byte(static_cast<std::uint8_t>(step));
  column(Column::kMiddleTargets).byte(static_cast<std::uint8_t>(step >> 8U));
  column(Column::kHighTargets).number(step >> 16U);
}

inline void SnapshotWriter::named_edge(Node target, std::uint32_t name) {
  put_edge(EdgeKind::kNamed, target);
  if (!has_own_shape_ && named_ < usual_->names.size() && usual_->names[named_] == name)
    ++named_;
  else
    put_own_name(name);
}

inline void SnapshotWriter::end_node() {
  if (!has_own_shape_ && degree_ != usual_->kinds.size()) give_own_shape();
  column(Column::kShapes).number(has_own_shape_ ? std::uint64_t{degree_} + 1 : 0);
  if (!is_pattern_) forget_usual();
  degree_ = named_ = 0;
  has_own_shape_ = false;
  auto details = static_cast<std::uint8_t>(1U + static_cast<unsigned>(generation_));
  if (has_hash_) details += file::kHasHash;
  column(Column::kDetails).byte(usual_->details == details ? 0 : details);
  usual_->details = details;
  generation_ = Generation::kUnknown;
  has_hash_ = false;
  ++node_;
  ++block_.rows;
  const bool is_full = block_.rows == kFullBlock || column(Column::kLowTargets).size() > kFullColumn ||
                       column(Column::kTexts).size() > kFullColumn;
  if (is_full) end_block();
}

// What a function of the program said of an object: what it is called, or how many more bytes it has.
struct Said {
  Node node = 0;
  std::uint64_t bytes = 0;
  std::string text;  // empty: nothing
};
// Appends that to a snapshot that is finished; `said` in the order of nodes.
Status append_said(const std::string& path, std::span<const Said> said);

}  // namespace plimsoll::heap
