// os/thread_stop.h: stops one thread of another process for as long as it takes to look at it (ptrace).
//
// The others run on. A thread that waits in the kernel should not be stopped, for that ends some system calls with
// EINTR and others early; so ask it to be done of threads that run. One that enters a call just then is not let see it:
// where the kernel would end the call with EINTR, although no signal has come, it begins again.
#pragma once

#include <sys/types.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/signals_blocked.h"
#include "os/process.h"

namespace plimsoll::os {

// The general registers of a thread in user mode, by the numbers of DWARF for x86-64, and its next instruction.
struct ThreadRegisters {
  std::array<std::uint64_t, 16> value{};
  std::uint64_t pc = 0;
};

// Whether a thread has been stopped; if not, why.
enum class StopOutcome : std::uint8_t {
  kStopped,
  kEnded,    // there is no such thread any more
  kRefused,  // not allowed, or another program traces it
  kLate,     // it did not come out of the kernel for a second
};

// Whether it can be done here. Not on aarch64: there the kernel does not show what a call that ended with EINTR had as
// its first argument, so that it could not be begun again.
#if defined(__linux__) && defined(__x86_64__)
inline constexpr bool kCanStopThreads = true;
#else
inline constexpr bool kCanStopThreads = false;
#endif

// Stops threads of other processes, one at a time. Everything is done by the thread that made it, which keeps SIGCHLD
// blocked meanwhile and has one of these at most. Their ends, if they are its children, are left for whoever started
// them to hear of. Where it cannot be done every
// stop is refused.
class ThreadStopper {
 public:
  ThreadStopper();
  ThreadStopper(const ThreadStopper&) = delete;
  ThreadStopper& operator=(const ThreadStopper&) = delete;
  ~ThreadStopper();  // lets go on; what was late is let go by the kernel at the latest when this process ends

  // Returns when the thread stands still in user mode or on its way back to it. Lets the one before go on.
  StopOutcome stop(Pid process, Tid tid);
  // Of the thread that is stopped; none if it has been killed meanwhile.
  [[nodiscard]] std::optional<ThreadRegisters> registers();
  // It goes on, or stays stopped if somebody else had stopped it (SIGSTOP). Does nothing if none is stopped.
  void let_go();
  // Threads that came to a stop after we had given up waiting go on. To be called now and then.
  void let_late_ones_go();

  // How long the last one that was let go has been held: from when it was asked to stop to when it could go on. An
  // upper bound: on a machine that is busy it may have waited for a CPU in that time, and so may we.
  [[nodiscard]] std::int64_t held_ns() const { return held_ns_; }
  [[nodiscard]] std::int64_t asked_ns() const { return asked_ns_; }
  [[nodiscard]] std::int64_t longest_held_ns() const { return longest_held_ns_; }
  // Of all so far, within a tenth; 0 if there was none.
  [[nodiscard]] std::int64_t median_held_ns() const;

 private:
  // A thread, and which process it is of.
  struct Target {
    Pid process{};
    Tid tid{};
    bool operator==(const Target&) const = default;
  };
  // What has come of a thread that was asked to stop.
  enum class Wait : std::uint8_t { kStopped, kEnded, kNothing };
  Wait wait_for(Tid tid, std::int64_t until_ns);
  Wait look_at(Tid tid);
  void hide_interruption(const Target& target);
  StopOutcome stop_now(const Target& target);
  // Once nobody is held.
  void allow_pauses();
  void note_held();

  const SignalsBlocked child_blocked_{SIGCHLD};
  std::optional<SignalsBlocked> pauses_blocked_;  // while somebody is held
  // Of SIGCHLD.
  struct sigaction action_before_ {};
  std::optional<Target> stopped_;
  int signal_ = 0;        // that it was about to get: it gets it when it goes on
  bool is_ours_ = false;  // it stands because we asked, not because of a signal
  std::int64_t asked_ns_ = 0, held_ns_ = 0, longest_held_ns_ = 0;
  // How many stops were as long as that: eight classes for each doubling.
  static constexpr double kClasses = 8;
  std::array<std::uint32_t, 360> held_counts_{};
  std::vector<Target> late_;
};

}  // namespace plimsoll::os
