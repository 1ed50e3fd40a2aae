// heap/snapshot_file.h: the file that a snapshot goes to.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"
#include "heap/snapshot_block.h"

namespace plimsoll::heap {

// Writes all of them. Returns the errno of what failed, or 0.
int write_all(int descriptor, std::string_view bytes);

// Compresses chunks and writes them; on request in a thread of its own, so that who makes them, while a program stands
// still, need not. Used by one thread.
class SnapshotFile {
 public:
  // The bytes are kept instead, for tests.
  SnapshotFile() = default;
  explicit SnapshotFile(UniqueFd fd) : fd_(std::move(fd)) {}
  SnapshotFile(const SnapshotFile&) = delete;
  SnapshotFile& operator=(const SnapshotFile&) = delete;
  ~SnapshotFile() { join(); }

  // From now on blocks are written by a thread of its own, which is none of the program's (os/own_thread.h). If the
  // system gives none, all goes on without.
  void write_beside();
  // As they are. Before the first chunk.
  void put(std::string_view bytes) { write(bytes); }
  // Takes what is in the block, which is empty then. Waits until the one before is written.
  void put(SnapshotBlock& block);
  // The last chunk. All is written then. Returns the errno of the first write that failed, or 0.
  int finish(std::string_view sections);

  // After finish: bytes that the file has.
  [[nodiscard]] std::uint64_t size() const { return size_; }
  // What was written, if there is no file.
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void join();
  void run();
  void write_chunk(std::span<const std::string_view> pieces);
  void write(std::string_view bytes);

  UniqueFd fd_;
  std::string bytes_;
  std::uint64_t size_ = 0;
  int error_ = 0;  // errno of the first write that failed

  bool has_thread_ = false;
  pthread_t thread_{};
  std::mutex mutex_;  // guards what follows
  std::condition_variable has_changed_;
  SnapshotBlock other_;     // the one that the caller does not fill
  bool is_handed_ = false;  // the thread has it; else it is empty
  bool is_over_ = false;
};

}  // namespace plimsoll::heap
