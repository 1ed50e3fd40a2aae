#include "heap/snapshot_file.h"

#include <unistd.h>

#include <cerrno>
#include <new>
#include <utility>

#include "base/chunk.h"
#include "heap/snapshot_format.h"
#include "os/own_thread.h"

namespace plimsoll::heap {
namespace {

// Pieces that wait for the thread.
constexpr std::size_t kMostTasks = 4;

}  // namespace

int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written >= 0) bytes.remove_prefix(static_cast<std::size_t>(written));
    if (written < 0 && errno != EINTR) return errno;
  }
  return 0;
}

void SnapshotFile::write_beside() {
  const auto body = [](void* self) -> void* {
    os::become_own_thread();
    static_cast<SnapshotFile*>(self)->run();
    return nullptr;
  };
  spare_.reserve(2 * kMostTasks);  // so that the thread need not make room
  has_thread_ = os::start_own_thread(thread_, "plimsoll-heap", body, this) == 0;
}

void SnapshotFile::take(std::size_t column, ColumnPiece& piece) {
  if (!has_thread_) {
    compress(piece.view(), columns_[column]);
    piece.size = 0;
    return;
  }
  std::unique_lock lock(mutex_);
  has_changed_.wait(lock, [this] { return tasks_.size() < kMostTasks; });
  tasks_.push_back({column, std::move(piece), {}});
  piece = {};
  if (!spare_.empty()) {
    piece = std::move(spare_.back());
    spare_.pop_back();
  }
  // To wake the thread takes as long as to fill the better part of a piece.
  const bool is_worth_it = tasks_.size() >= kMostTasks / 2;
  lock.unlock();
  if (is_worth_it) has_changed_.notify_all();
}

void SnapshotFile::put(std::vector<ChunkPart> parts) {
  if (!has_thread_) return write_chunk(parts);
  {
    const std::lock_guard guard(mutex_);
    tasks_.push_back({0, {}, std::move(parts)});
  }
  has_changed_.notify_all();
}

void SnapshotFile::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    has_changed_.wait(lock, [this] { return !tasks_.empty() || is_over_; });
    if (tasks_.empty()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    const bool may_go_on = tasks_.size() == kMostTasks / 2;
    lock.unlock();
    if (may_go_on) has_changed_.notify_all();
    try {
      if (task.piece.bytes)
        compress(task.piece.view(), columns_[task.column]);
      else
        write_chunk(task.parts);
    } catch (const std::bad_alloc&) {
      if (error_ == 0) error_ = ENOMEM;
    }
    lock.lock();
    task.piece.size = 0;
    if (task.piece.bytes && spare_.size() < spare_.capacity()) spare_.push_back(std::move(task.piece));
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
  join();
  write(make_chunk(sections, file::kCompressionLevel));
  return error_;
}

void SnapshotFile::compress(std::string_view piece, Frames& out) {
  out.raw_bytes += piece.size();
  std::string frame = compressor_.frame(piece);
  if (frame.empty() && error_ == 0) error_ = ENOMEM;
  out.frames.push_back(std::move(frame));
}

void SnapshotFile::write_chunk(std::span<const ChunkPart> parts) {
  std::vector<Frames> between(parts.size());
  std::vector<const Frames*> all;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    compress(parts[i].bytes, between[i]);
    all.push_back(&between[i]);
    if (parts[i].column != ChunkPart::kNoColumn) all.push_back(&columns_[parts[i].column]);
  }
  if (!all.empty()) write_frames(all);
  for (Frames& column : columns_) column = {};
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
