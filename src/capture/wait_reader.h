// capture/wait_reader.h: the half of the reader engine for wall-clock time: looks, from a thread of ours, at all
// threads that do not run, and notes what they wait for, and on which stack. No signal is sent, so nothing that waits
// is ever interrupted; what threads do while they run is the business of their own ticks (cpu_sampler.h) or of
// run_reader.h.
//
// A look is exact, not merely plausible: a thread's CPU clock is read before and after its frames. If it has not moved,
// not to a nanosecond, the thread did not run, and what was read is its stack at that time. The clock is a seqlock that
// the kernel keeps.
//
// Time is accounted for, not estimated: of the time between two looks, what the CPU clock says is CPU time and comes
// with ticks; what /proc/.../schedstat says was spent in a run queue is kReady; and the rest was a wait. It counts for
// the wait that the look finds. If the look finds the thread running, it counts for the wait that the previous look
// found, else for the one that the next look finds.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <memory>

#include "base/sample_ring.h"
#include "capture/code_registry.h"
#include "capture/cpu_sampler.h"
#include "capture/thread_clocks.h"
#include "os/os.h"

namespace plimsoll::capture {

// Used by one thread at a time.
class WaitReader {
 public:
  WaitReader(const Interpreter& interpreter, CpuSampler& sampler, SampleRing& ring, SeenFilter& seen,
             std::size_t max_depth);

  // A look at one thread; true if it runs, or would if it could. Between the looks at all threads of a round, no thread
  // may end.
  bool look_at(const ThreadSlot& slot);
  // After a round: what is known of threads that were not in it is told to the end and forgotten.
  void end_round();
  // Sampling pauses, or ends: what is known is told to the end. Time counts again from the next round on.
  void pause();
  void finish();
  // In the child of a fork: closes descriptors.
  void abandon() { watched_.clear(); }

 private:
  // What is known of one thread.
  struct Watched {
    std::uint64_t seen_in_round = 0;
    ThreadClocks looked;                     // at the last look
    Activity activity = Activity::kRunning;  // what the last look found; a wait is proven, its stack in the ring
    std::int64_t open_ns = 0;                // of that wait, not in the ring yet
    std::int64_t unplaced_ns = 0;            // waited, but between two looks that both found it running
    std::int64_t unplaced_ready_ns = 0;
    std::int64_t ready_told_ns = 0;  // found as kReady before the kernel counted it
    os::ThreadProbe probe;
  };
  Watched& watched(const ThreadSlot& slot);
  static ThreadClocks clocks_of(const ThreadSlot& slot, const Watched& of);
  // Looks for an instant at which the thread provably did not run, and puts its stack into the ring. False if it runs.
  bool find_wait(const ThreadSlot& slot, Watched& of, Address thread_state);
  void found_running(const ThreadSlot& slot, Watched& of);
  // What became of a stack.
  enum class Proof : std::uint8_t { kHolds, kMoved, kLost };
  Proof put_stack(const ThreadSlot& slot, Address thread_state, Activity activity, std::int64_t weight_ns,
                  std::int64_t cpu_ns);
  // False if the ring has no room.
  bool put_same(ThreadSerial serial, Watched& of, RawSample::Stack stack);
  // Likewise of a wait that is over: what there is no room for is lost, and counted.
  void tell_end(ThreadSerial serial, Watched& of, RawSample::Stack stack);
  [[nodiscard]] bool is_of_gil(Address lock, Address thread_state) const;

  const Interpreter interpreter_;
  const std::size_t max_depth_;
  CpuSampler& sampler_;
  SampleRing& ring_;
  SeenFilter& seen_;
  boost::unordered_flat_map<std::uint32_t, std::unique_ptr<Watched>> watched_;  // by ThreadSerial
  std::uint64_t round_ = 1;
  bool was_paused_ = false;
};

}  // namespace plimsoll::capture
