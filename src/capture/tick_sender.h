// capture/tick_sender.h: ticks without perf events, at any rate, that let threads sleep: a thread of ours looks at the
// others at the sampling rate, at random instants, and sends a signal to each that runs.
//
// A timer on a thread's CPU clock ticks only when the scheduler does, and a monotonic one in sleeps, too, of which it
// ends every one that is longer than its period, where C code may not expect EINTR. A signal to a thread that runs ends
// a call only if that begins to wait within the microseconds that the signal needs; see interrupted_call.h.
//
// Random instants are fair: each moment of a thread's CPU time is as likely to be met as any other, however long it
// runs at a time; and the sample stands for the CPU time since the last one, by the thread's own clock. But a signal
// takes a microsecond or two to another CPU, and some 20 in a virtual machine; a thread that calls the system meanwhile
// takes it there. Of a program that asks for the time every 4 us, 99 % of all samples were in that call, in such a
// machine, where 28 % belonged. So `auto` does not choose this.
//
// A thread that stands in the queue of a CPU would run if we did not: where we have taken its own. But it may as well
// have been woken up a moment ago, and a signal ends its wait with EINTR all the same, since the kernel looks at
// signals before it looks at what has happened. So it is sent a tick only if it was put aside as we came: if it has
// used all of the time since the last look, or was put aside a moment ago. What has no ticks by all that, as where
// other programs want all CPUs, has those of a timer on its CPU clock: rarer ones, which end no wait.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "capture/thread_slots.h"

namespace plimsoll::capture {

// For a CpuSampler that needs_sender(). Used by one thread at a time. No thread may end between the beginning of a
// round of looks and its end.
class TickSender {
 public:
  void begin_round();
  // A look at one thread: sends it a tick if it has a CPU. False if it has not run since the last look, as far as is
  // known.
  bool look_at(ThreadSlot& slot);
  // Sends ticks to those that would have one if we had not taken it.
  void end_round() const;

 private:
  using Look = Sending::Look;
  // One that has run since the last look, and has no CPU now.
  struct Paused {
    ThreadSlot* slot;
    Look last;
    [[nodiscard]] std::int64_t used_ns() const { return slot->sending.last_look.cpu_ns - last.cpu_ns; }
  };
  // To ask the kernel about each takes longer than all the rest, and only one can have been put aside for us: most
  // likely of those that have used most of the time.
  static constexpr std::size_t kMostAsked = 4;
  void keep(const Paused& paused);
  // Whether there would be a second tick at once, or one that a reader makes unnecessary.
  [[nodiscard]] static bool is_too_soon(ThreadSlot& slot, std::int64_t cpu_ns);

  std::uint32_t round_ = 0;
  std::array<Paused, kMostAsked> paused_{};
  std::size_t paused_count_ = 0;
};

}  // namespace plimsoll::capture
