#include "heap/snapshot_file.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/chunk.h"
#include "heap/snapshot_format.h"
#include "os/own_thread.h"

namespace plimsoll::heap {

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
  has_thread_ = os::start_own_thread(thread_, "plimsoll-heap", body, this) == 0;
}

void SnapshotFile::put(SnapshotBlock& block) {
  if (!has_thread_) {
    write_chunk(block.sections().all());
    block.clear();
    return;
  }
  std::unique_lock lock(mutex_);
  has_changed_.wait(lock, [this] { return !is_handed_; });
  std::swap(block, other_);
  is_handed_ = true;
  lock.unlock();
  has_changed_.notify_all();
}

void SnapshotFile::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    has_changed_.wait(lock, [this] { return is_handed_ || is_over_; });
    if (!is_handed_) return;
    lock.unlock();
    write_chunk(other_.sections().all());
    other_.clear();
    lock.lock();
    is_handed_ = false;
    has_changed_.notify_all();
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
  write_chunk(std::span(&sections, 1));
  return error_;
}

void SnapshotFile::write_chunk(std::span<const std::string_view> pieces) {
  std::size_t size = 0;
  for (const std::string_view piece : pieces) size += piece.size();
  if (size == 0) return;
  if (size <= file::kLargestChunk) return write(make_chunk(pieces, file::kCompressionLevel));
  if (error_ == 0) error_ = EFBIG;  // one object with tens of millions of references
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
