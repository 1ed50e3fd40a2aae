// heap/edge_reader.h: the edges of a snapshot file's blocks -> the graph of a Snapshot; on request in a thread of its
// own, while the next block's rows are read.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <vector>

#include "heap/edge_columns.h"
#include "heap/snapshot.h"
#include "os/own_thread.h"

namespace plimsoll::heap {

inline constexpr std::uint64_t kMostEdges = 0xffff0000U;

// How much of a file has been read, and by that how much room to make: a column that is copied touches its pages twice,
// and that takes longer than decoding it. Pages that nothing is written to are no memory.
struct ColumnRoom {
  double part_read = 1;
  std::uint64_t most_expected = 0;

  // For more of a column, and for as much as the rest of the file will have if it is like what has been read.
  template <typename Column>
  void make(Column& column, std::size_t more) const {
    const std::size_t needed = column.size() + more;
    if (needed <= column.capacity()) return;
    constexpr double kSlack = 1.5;
    const double expected = kSlack * static_cast<double>(needed) / part_read;
    // Nothing takes less than a byte.
    const auto most = static_cast<double>(most_expected);
    column.reserve(std::max(needed + needed / 4, static_cast<std::size_t>(std::min(expected, most))));
  }
};

// The rows whose edges are to be read.
struct EdgeRows {
  Node first = 0;
  std::vector<std::uint32_t> types;  // of each
  std::size_t type_count = 0;        // of all that there are
  std::size_t most_edges = 0;
  ColumnRoom room;
};

// Appends edges, from bytes that may be hostile: graph, kinds, names and weak edges of a Snapshot. Targets may be
// beyond all nodes; that of an edge to a class is the number of the type.
class EdgeReader {
 public:
  explicit EdgeReader(Snapshot& snapshot) : snapshot_(snapshot) {}
  EdgeReader(const EdgeReader&) = delete;
  EdgeReader& operator=(const EdgeReader&) = delete;
  ~EdgeReader() { stop(Waiting::kDropped); }

  // How many rows there were before one whose edges cannot be. Not beside.
  std::size_t read(EdgeColumns& columns, const EdgeRows& rows);
  std::size_t read(EdgeColumnsOfVersion1& columns, const EdgeRows& rows);

  // From now on a thread reads them, if the system gives one, and nobody else looks at what it appends to.
  bool read_beside();
  [[nodiscard]] bool is_beside() const { return thread_.is_there(); }
  // A block for the thread; the bytes must stay as they are until it is done. Waits while another one does.
  void put(const EdgeColumns& columns, std::vector<std::uint32_t> names, EdgeRows rows);
  // How many were put, and to wait until the first so many are done.
  [[nodiscard]] std::uint64_t blocks() const { return put_; }
  void wait_for(std::uint64_t blocks);
  // Waits for all; false if there was a row whose edges cannot be.
  bool finish();

  // That any edge has, but for those to classes.
  [[nodiscard]] Node highest_target() const { return highest_; }

 private:
  // What becomes of blocks that wait for the thread when it is to end.
  enum class Waiting : std::uint8_t { kRead, kDropped };
  // What waits for the thread.
  struct Block {
    EdgeColumns columns;
    std::vector<std::uint32_t> names;
    EdgeRows rows;
  };
  // The pattern of a type, and the block that it is of.
  struct TypePattern {
    std::uint32_t block = 0;
    EdgePattern pattern;
  };

  template <typename Columns>
  std::size_t read_rows(Columns& columns, const EdgeRows& rows);
  void resize_edges(std::size_t count, const ColumnRoom& room);
  EdgePattern& pattern_of(std::uint32_t type);
  void run();
  void stop(Waiting waiting);

  Snapshot& snapshot_;
  std::uint32_t block_ = 0;  // its number, from 1 on
  std::vector<TypePattern> by_type_;
  Node highest_ = 0;
  std::uint64_t put_ = 0;

  std::mutex mutex_;  // guards what follows
  std::condition_variable has_changed_;
  std::deque<Block> blocks_;
  std::uint64_t done_ = 0;
  bool is_over_ = false, has_failed_ = false;
  std::exception_ptr error_;
  os::OwnThread thread_;
};

}  // namespace plimsoll::heap
