// capture/allocation_recorder.h: sampled allocations -> ring, in the thread that allocates, in the middle of its
// allocation. Allocates nothing of Python's, takes no lock but that of the table of threads, once a thread.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "base/sample_ring.h"
#include "capture/code_registry.h"
#include "capture/cpu_sampler.h"
#include "capture/raw_allocation.h"

namespace plimsoll::capture {

// The allocation side of one session. For any thread, with the GIL or without.
class AllocationRecorder {
 public:
  AllocationRecorder(const Interpreter& interpreter, CpuSampler& sampler, SampleRing& ring, SeenFilter& seen,
                     std::size_t max_depth);
  AllocationRecorder(const AllocationRecorder&) = delete;
  AllocationRecorder& operator=(const AllocationRecorder&) = delete;

  // The calling thread has been given a block that is a sample. Notes the stack it is on; false if that cannot be: the
  // sample is lost then, and counted.
  bool allocated(const RawAllocation& block);
  // A block of this recording was freed, or its type is known now. Never lost: what finds no room in the ring waits for
  // the next call.
  void released(const RawRelease& release);
  // Once more, at the end. What is left now is lost.
  void flush_releases();
  // From some time on, allocations were not sampled: another tool has taken out the hooks.
  void count_cut_short() { sampler_.count_drop(DropReason::kHooksRemoved, 0); }
  // So many bytes have been allocated, sampled or not.
  void count_bytes(std::uint64_t bytes) { allocated_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  // All of them, but for what each thread has not counted yet: at most the bytes between two of its samples.
  [[nodiscard]] std::uint64_t allocated_bytes() const { return allocated_bytes_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t next_number() { return next_number_.fetch_add(1, std::memory_order_relaxed); }

 private:
  // A release that has found no room yet.
  struct Waiting {
    std::int64_t time_ns = 0;
    RawRelease release;
  };
  bool put(const Waiting& waiting);
  void put_waiting();
  ThreadSerial serial_of_caller();

  const Interpreter interpreter_;
  const std::size_t max_depth_;
  const std::uint32_t session_;  // tells a thread's cached serial from that of an earlier session
  CpuSampler& sampler_;
  SampleRing& ring_;
  SeenFilter& seen_;
  std::atomic<std::uint64_t> next_number_{0};
  std::atomic<std::uint64_t> allocated_bytes_{0};
  std::mutex mutex_;  // guards what follows
  std::vector<Waiting> waiting_;
};

}  // namespace plimsoll::capture
