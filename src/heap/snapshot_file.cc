#include "heap/snapshot_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <optional>
#include <utility>

#include "base/chunk.h"
#include "base/write_file.h"
#include "heap/snapshot_format.h"
#include "os/own_thread.h"

namespace plimsoll::heap {
namespace {

// Pieces that wait for the thread. Who brings more, as many come at once when a block ends, compresses some itself.
constexpr std::size_t kMostTasks = 4;
// To wake it takes as long as to fill the better part of a piece.
constexpr std::size_t kEnoughTasks = 2;
// Threads that help: who looks at objects, and who makes rows.
constexpr std::size_t kMostHelpers = 2;

// Empty if there is no memory for it.
std::string frame_of(const ColumnPiece& piece, FrameCompressor& compressor) noexcept {
  try {
    return compressor.frame(piece.view());
  } catch (const std::bad_alloc&) {
    return {};
  }
}

}  // namespace

void SnapshotFile::write_beside() {
  spare_.reserve(kMostTasks);  // so that the thread need not make room
  helpers_.reserve(kMostHelpers);
  has_thread_ = os::start_own_thread<&SnapshotFile::run>(thread_, "plimsoll-heap", this) == 0;
}

void SnapshotFile::take(std::size_t column, ColumnPiece& piece) {
  if (!has_thread_) {
    add_frame(columns_[column], piece.view());
    piece.size = 0;
    return;
  }
  std::unique_lock lock(mutex_);
  while (tasks_.size() >= kMostTasks)
    if (!help(lock)) has_changed_.wait(lock);
  tasks_.push_back({column, std::move(piece), {}});
  piece = {};
  if (!spare_.empty()) {
    piece = std::move(spare_.back());
    spare_.pop_back();
  }
  const bool is_worth_it = tasks_.size() >= kEnoughTasks;
  lock.unlock();
  if (is_worth_it) has_changed_.notify_all();
}

void SnapshotFile::put(std::vector<ChunkPart> parts) {
  if (!has_thread_) return write_chunk(parts, std::exchange(columns_, {}));
  {
    const std::lock_guard guard(mutex_);
    tasks_.push_back({0, {}, std::move(parts)});
  }
  has_changed_.notify_all();
}

// The piece in front, which has_piece() says is there; the lock is not held meanwhile.
void SnapshotFile::compress_next(std::unique_lock<std::mutex>& lock, FrameCompressor& compressor) noexcept {
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  ++open_;
  Frames& column = columns_[task.column];
  const std::optional<std::size_t> place = place_in(column, task.piece.size);
  lock.unlock();
  has_changed_.notify_all();
  std::string frame = place ? frame_of(task.piece, compressor) : std::string{};
  lock.lock();
  if (frame.empty())
    lacks_memory_ = true;
  else
    column.frames[*place] = std::move(frame);
  task.piece.size = 0;
  if (spare_.size() < spare_.capacity()) spare_.push_back(std::move(task.piece));
  --open_;
}

// Where the frame of one more piece belongs; none if there is no memory for it.
std::optional<std::size_t> SnapshotFile::place_in(Frames& column, std::size_t piece_bytes) noexcept {
  try {
    column.frames.emplace_back();
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
  column.raw_bytes += piece_bytes;
  return column.frames.size() - 1;
}

bool SnapshotFile::help(std::unique_lock<std::mutex>& lock) noexcept {
  if (!has_piece()) return false;
  std::unique_ptr<FrameCompressor> helper;
  if (helpers_.empty()) {
    helper.reset(new (std::nothrow) FrameCompressor(file::kCompressionLevel, file::kShortestMatch));
    if (!helper) return false;
  } else {
    helper = std::move(helpers_.back());
    helpers_.pop_back();
  }
  compress_next(lock, *helper);
  if (helpers_.size() < helpers_.capacity()) helpers_.push_back(std::move(helper));
  has_changed_.notify_all();
  return true;
}

bool SnapshotFile::help() noexcept {
  std::unique_lock lock(mutex_);
  return help(lock);
}

void SnapshotFile::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    // A chunk ends when all of its pieces are compressed.
    has_changed_.wait(lock, [this] { return has_piece() || (open_ == 0 && (!tasks_.empty() || is_over_)); });
    if (has_piece()) {
      compress_next(lock, compressor_);
      continue;
    }
    if (tasks_.empty()) return;
    const std::vector<ChunkPart> parts = std::move(tasks_.front().parts);
    tasks_.pop_front();
    const Columns columns = std::exchange(columns_, {});
    if (lacks_memory_ && error_ == 0) error_ = ENOMEM;
    lock.unlock();
    has_changed_.notify_all();
    try {
      write_chunk(parts, columns);
    } catch (const std::bad_alloc&) {
      if (error_ == 0) error_ = ENOMEM;
    }
    lock.lock();
  }
}

void SnapshotFile::join() {
  if (!std::exchange(has_thread_, false)) return;
  {
    const std::lock_guard guard(mutex_);
    is_over_ = true;
  }
  has_changed_.notify_all();
  ::pthread_join(thread_, nullptr);
}

int SnapshotFile::finish(std::string_view sections) {
  while (help()) {
  }
  join();
  write(make_chunk(sections, file::kCompressionLevel));
  return error_;
}

void SnapshotFile::remove(const std::string& path) const {
  struct stat ours {};
  struct stat there {};
  if (!fd_.is_open() || ::fstat(fd_.get(), &ours) != 0 || ::lstat(path.c_str(), &there) != 0) return;
  const bool is_ours = ours.st_dev == there.st_dev && ours.st_ino == there.st_ino && ours.st_uid == ::geteuid();
  if (is_ours && S_ISREG(ours.st_mode)) ::unlink(path.c_str());
}

// By who writes.
void SnapshotFile::add_frame(Frames& out, std::string_view piece) {
  out.raw_bytes += piece.size();
  std::string frame = compressor_.frame(piece);
  if (frame.empty() && error_ == 0) error_ = ENOMEM;
  out.frames.push_back(std::move(frame));
}

void SnapshotFile::write_chunk(std::span<const ChunkPart> parts, const Columns& columns) {
  std::vector<Frames> between(parts.size());
  std::vector<const Frames*> all;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    add_frame(between[i], parts[i].bytes);
    all.push_back(&between[i]);
    if (parts[i].column != ChunkPart::kNoColumn) all.push_back(&columns[parts[i].column]);
  }
  if (!all.empty()) write_frames(all);
}

void SnapshotFile::write_frames(std::span<const Frames* const> all) {
  std::vector<std::string_view> frames;
  std::size_t raw_bytes = 0;
  for (const Frames* each : all) {
    frames.insert(frames.end(), each->frames.begin(), each->frames.end());
    raw_bytes += each->raw_bytes;
  }
  if (raw_bytes > file::kLargestChunk) {  // one object with tens of millions of references
    if (error_ == 0) error_ = EFBIG;
    return;
  }
  write(chunk_head(static_cast<std::uint32_t>(raw_bytes), frames));
  for (const std::string_view frame : frames) write(frame);
}

void SnapshotFile::write(std::string_view bytes) {
  size_ += bytes.size();
  if (!fd_.is_open()) {
    bytes_ += bytes;
    return;
  }
  if (error_ == 0) error_ = write_all(fd_.get(), bytes);
}

}  // namespace plimsoll::heap
