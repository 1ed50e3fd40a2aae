// heap/snapshot_file.h: the file that a snapshot goes to.
#pragma once

#include <pthread.h>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/chunk.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "heap/snapshot_block.h"

namespace plimsoll::heap {

// Compresses chunks and writes them; on request in a thread of its own, so that who makes them, while a program stands
// still, need not. What a chunk has is compressed as it comes: of a list of ten million there is never all of it. Used
// by one thread, but for help().
class SnapshotFile : public ColumnSink {
 public:
  // The bytes are kept instead, for tests.
  SnapshotFile() = default;
  explicit SnapshotFile(UniqueFd fd) : fd_(std::move(fd)) {}
  SnapshotFile(const SnapshotFile&) = delete;
  SnapshotFile& operator=(const SnapshotFile&) = delete;
  ~SnapshotFile() override { join(); }

  // From now on all is compressed and written by a thread of its own, which is none of the program's
  // (os/own_thread.h). If the system gives none, all goes on without.
  void write_beside();
  // As they are. Before the first chunk.
  void put(std::string_view bytes) { write(bytes); }
  // Compresses a piece that waits for the thread; false if there is none. For any thread that would wait otherwise.
  bool help() noexcept;
  // Of the chunk that `put` will end. While too many pieces wait, it helps.
  void take(std::size_t column, ColumnPiece& piece) override;
  // A chunk of these parts and of the columns taken since the one before; what no part names is left out.
  void put(std::vector<ChunkPart> parts);
  // The last chunk. All is written then. Returns the errno of the first write that failed, or 0.
  int finish(std::string_view sections);
  // Removes the file at `path`, if that is this one, a regular file of this user's.
  void remove(const std::string& path) const;

  // After finish: bytes that the file has.
  [[nodiscard]] std::uint64_t size() const { return size_; }
  // What was written, if there is no file.
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  // What there is to do: compress a piece of a column, or end a chunk, if there is no piece.
  struct Task {
    std::size_t column = 0;
    ColumnPiece piece;
    std::vector<ChunkPart> parts;

    [[nodiscard]] bool ends_chunk() const { return !piece.bytes; }
  };
  // A column of the chunk, compressed, a piece after the other.
  struct Frames {
    std::vector<std::string> frames;
    std::size_t raw_bytes = 0;
  };
  using Columns = std::array<Frames, SnapshotBlock::kColumnCount>;

  void join();
  void run();
  bool help(std::unique_lock<std::mutex>& lock) noexcept;
  void compress_next(std::unique_lock<std::mutex>& lock, FrameCompressor& compressor) noexcept;
  [[nodiscard]] bool has_piece() const { return !tasks_.empty() && !tasks_.front().ends_chunk(); }
  static std::optional<std::size_t> place_in(Frames& column, std::size_t piece_bytes) noexcept;
  void add_frame(Frames& out, std::string_view piece);
  void write_chunk(std::span<const ChunkPart> parts, const Columns& columns);
  void write_frames(std::span<const Frames* const> all);
  void write(std::string_view bytes);

  UniqueFd fd_;
  std::string bytes_;
  std::uint64_t size_ = 0;
  int error_ = 0;                                                              // errno of the first write that failed
  FrameCompressor compressor_{file::kCompressionLevel, file::kShortestMatch};  // of who writes

  bool has_thread_ = false;
  pthread_t thread_{};
  std::mutex mutex_;  // guards what follows
  std::condition_variable has_changed_;
  Columns columns_;  // of the chunk
  std::deque<Task> tasks_;
  std::size_t open_ = 0;                                   // pieces that are being compressed
  std::vector<std::unique_ptr<FrameCompressor>> helpers_;  // that nobody uses
  std::vector<ColumnPiece> spare_;                         // empty
  bool lacks_memory_ = false, is_over_ = false;
};

}  // namespace plimsoll::heap
