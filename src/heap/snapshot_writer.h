// heap/snapshot_writer.h: a snapshot goes to disk while it is taken; nothing of it stays in memory.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "heap/snapshot.h"

namespace plimsoll::heap {

// Writes types and names as they turn up, then objects in the order of their numbers, then other nodes, then finish.
// A write that fails is told of by finish.
class SnapshotWriter {
 public:
  // Makes the file, readable for its owner only. A symbolic link is not followed.
  static Result<SnapshotWriter> create(const std::string& path);
  // Keeps the bytes instead, for tests.
  SnapshotWriter() { begin_file(); }

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
  void content_hash(std::uint64_t hash);
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
  Status finish();

  [[nodiscard]] Node node_count() const { return node_; }
  [[nodiscard]] std::uint64_t edge_count() const { return edges_; }
  [[nodiscard]] std::uint64_t lost_edge_count() const { return lost_edges_; }
  [[nodiscard]] std::uint64_t file_bytes() const { return file_bytes_; }
  // What was written, if there is no file.
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  // Those of a block of rows, in the order of the file.
  enum Column { kTypes, kSizes, kRefcounts, kAddresses, kDegrees, kKinds, kTargets, kNames, kTexts, kColumnCount };

  void begin_file();
  void put_edge(EdgeKind kind, Node target);
  void end_block();
  void write_chunk(std::string_view raw);
  void write(std::string_view bytes);

  std::string path_;
  UniqueFd fd_;
  int error_ = 0;  // errno of the first write that failed
  std::string bytes_;
  std::uint64_t file_bytes_ = 0;

  std::string new_types_, new_names_, classes_, meta_, memory_, buffers_;
  std::uint32_t types_ = 0, names_ = 0;
  // Bytes that grow, quicker at small numbers than std::string: room for one is made before it is written.
  class Bytes {
   public:
    void number(std::uint64_t value) {
      char* at = room(kLongestVarint);
      while (value >= 0x80U) {
        *at++ = static_cast<char>(value | 0x80U);
        value >>= 7U;
      }
      *at++ = static_cast<char>(value);
      size_ = static_cast<std::size_t>(at - bytes_.data());
    }
    void byte(std::uint8_t value) {
      *room(1) = static_cast<char>(value);
      ++size_;
    }
    // 8 bytes, little endian.
    void word(std::uint64_t value) {
      char* at = room(sizeof value);
      for (unsigned i = 0; i < sizeof value; ++i) at[i] = static_cast<char>(value >> (8 * i));
      size_ += sizeof value;
    }
    void text(std::string_view text) {
      number(text.size());
      text.copy(room(text.size()), text.size());
      size_ += text.size();
    }
    [[nodiscard]] std::string_view view() const { return {bytes_.data(), size_}; }
    [[nodiscard]] std::size_t size() const { return size_; }
    void clear() { size_ = 0; }

   private:
    static constexpr std::size_t kLongestVarint = 10;
    char* room(std::size_t more) {
      if (bytes_.size() - size_ < more) bytes_.resize(2 * bytes_.size() + more + 4096);
      return bytes_.data() + size_;
    }
    std::vector<char> bytes_;
    std::size_t size_ = 0;
  };
  std::array<Bytes, kColumnCount> columns_;
  Bytes generations_, hashed_, hashes_, allocated_rows_, allocated_by_;
  Generation generation_ = Generation::kUnknown;  // of the row
  bool has_generations_ = false;                  // a row has one
  std::size_t hashed_row_ = 0;                    // the row after the last one with a hash
  std::size_t allocated_row_ = 0;                 // the row after the last one with a stack
  std::size_t rows_ = 0;                          // in the columns
  std::size_t text_row_ = 0;                      // the row after the last one with a text
  std::uint64_t address_ = 0;                     // of the row before
  Node buffer_owner_ = 0;                         // of the last buffer
  std::uint32_t degree_ = 0;
  Node node_ = 0;
  Node objects_ = kNoNode;  // set by end_objects
  std::uint64_t edges_ = 0, lost_edges_ = 0;
};

// What a function of the program said of an object: what it is called, or how many more bytes it has.
struct Said {
  Node node = 0;
  std::uint64_t bytes = 0;
  std::string text;  // empty: nothing
};
// Appends that to a snapshot that is finished; `said` in the order of nodes.
Status append_said(const std::string& path, std::span<const Said> said);

}  // namespace plimsoll::heap
