// capture/allocation_recorder.h: sampled allocations -> ring, in the thread that allocates, in the middle of its
// allocation. Allocates nothing of Python's. An allocation takes no lock but that of the table of threads, once a
// thread; the end of a sampled block takes one each time, which orders those that wait for room in the ring.
//
// Unlike a tick, an allocation can wait: where the ring is full, the thread does so until the drain thread has made
// room. A program that allocates faster than can be written down is slowed, and its books stay right.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "base/sample_ring.h"
#include "capture/code_registry.h"
#include "capture/cpu_sampler.h"
#include "capture/drain_gate.h"
#include "capture/native_sample.h"
#include "capture/raw_allocation.h"

namespace plimsoll::capture {

// The allocation side of one session. For any thread, with the GIL or without.
class AllocationRecorder {
 public:
  // `modules` is the machine code that stacks are to be of, too; null: Python frames only. The drain thread is
  // woken through `gate` where a thread waits until the ring is emptied.
  AllocationRecorder(const Interpreter& interpreter, CpuSampler& sampler, SampleRing& ring, SeenFilter& seen,
                     std::size_t max_depth, const native::Modules* modules, DrainGate& gate);
  AllocationRecorder(const AllocationRecorder&) = delete;
  AllocationRecorder& operator=(const AllocationRecorder&) = delete;

  // The calling thread has been given a block that is a sample. Notes it with the stack that the thread is on, or
  // without one if that cannot be proven; false if there is no room for it: the sample is lost then, and counted.
  bool allocated(const RawAllocation& block);
  // A block of this recording was freed, or its type is known now. Not lost for want of room in the ring: what finds
  // none waits for the next call.
  void released(const RawRelease& release);
  [[nodiscard]] const Interpreter& interpreter() const { return interpreter_; }
  // At the end: waits until all of them are in the ring. What the drain thread makes no room for is lost.
  void flush_releases();
  // Likewise, by the drain thread itself, which makes the room: whether some are left for when it has done so again.
  [[nodiscard]] bool put_rest();
  // The session is over, though the hooks may still be there: what comes from now on is not for it.
  void close() { is_closed_.store(true, std::memory_order_relaxed); }
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
  // What becomes of a record for which the ring has no room.
  enum class IfFull { kGiveUp, kWait };
  SampleRing::Slot reserve(std::size_t size, IfFull if_full);
  SampleRing::Slot wait_for_room(std::size_t size);
  bool put(const Waiting& waiting, IfFull if_full);
  void put_waiting(IfFull if_full);
  ThreadSerial serial_of_caller();
  // Writes the stack of the calling thread into `room`, what comes after the head of `sample`.
  NativeSample write_stack(RawSample& sample, std::span<std::byte> room);

  const Interpreter interpreter_;
  const std::size_t max_depth_;
  const native::Modules* const modules_;
  const std::size_t most_stack_bytes_;
  const std::uint32_t session_;  // tells a thread's cached serial from that of an earlier session
  CpuSampler& sampler_;
  SampleRing& ring_;
  SeenFilter& seen_;
  DrainGate& gate_;
  std::atomic<bool> is_stuck_{false};  // nobody has made room in all the time that one may wait for it
  std::atomic<bool> is_closed_{false};
  std::atomic<std::uint64_t> next_number_{0};
  std::atomic<std::uint64_t> allocated_bytes_{0};
  std::mutex mutex_;  // guards what follows
  std::vector<Waiting> waiting_;
};

}  // namespace plimsoll::capture
