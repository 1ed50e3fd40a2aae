// python/heap_allocations.h: who allocated the objects of a snapshot, if allocations are being recorded meanwhile.
//
// An object is joined by the address of its block with what the recording knows of living blocks. That is its birth,
// too: what was there before is forgotten when it is freed.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/growing_array.h"
#include "capture/session.h"
#include "heap/snapshot_writer.h"

namespace plimsoll::python {

// Adds the pages of the heap that a recording of allocations puts in the place of pymalloc, which are like its pools.
// Blocks of it may live when nothing is recorded any more. Needs the GIL.
void add_own_pools(GrowingArray<heap::Pool>& pools);

// The recording of this process, as one snapshot sees it. Needs the GIL throughout.
class HeapAllocations {
 public:
  // Of the recording that runs now, if any.
  explicit HeapAllocations(std::shared_ptr<capture::Session> session) : session_(std::move(session)) {}

  // Before a fork: keeps what the child will need as it is until `release`.
  void hold();
  void release() { lock_ = {}; }

  // Whether there is a recording.
  [[nodiscard]] bool are_known() const { return session_ != nullptr; }
  // The number, in the file, of the stack that allocated this block; nothing if that was not recorded.
  std::optional<std::uint32_t> stack_of(const void* block);
  // After the last of them: the stacks.
  void write(heap::SnapshotWriter& writer);

 private:
  const std::shared_ptr<capture::Session> session_;
  std::unique_lock<std::timed_mutex> lock_;
  boost::unordered_flat_map<std::uint64_t, std::uint32_t> number_of_;  // by that of the sample, or of its stack
  std::vector<std::uint64_t> used_;                                    // by number
};

}  // namespace plimsoll::python
