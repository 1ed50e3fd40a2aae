// remote/standing.h: when a thread of another process stands still without being stopped.
//
// Two cases. A thread that waits in the kernel stands still until it comes to a CPU again. And one that runs stands
// still while somebody else runs on its CPU: a reader that goes to the CPU of the thread that it looks at, and wakes
// there, has the scheduler put the thread aside for as long as the reader runs, like any thread that wakes. If the
// scheduler lets the thread go on elsewhere meanwhile, it counts another turn of it. So in both cases the kernel's
// count of turns is a seqlock: what was read while it did not change was true all at one time, however fast the thread
// is.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "os/os.h"
#include "os/process.h"

namespace plimsoll::remote {

// A thread that was off its CPU: it stood still as long as its turns are the same.
struct Standing {
  const os::ThreadProbe* probe = nullptr;
  os::Schedule schedule;  // read before the kernel said that it was off its CPU
  [[nodiscard]] bool goes_on() const { return probe->schedule() == schedule; }
};

// Of a thread that waits. None if it runs or is ready to, or if the kernel does not say.
std::optional<Standing> standing_still(const os::ThreadProbe& probe);

// Of threads that run. While it lives the calling thread stays on the CPU that it went to last. Used by one thread.
class SharedCpu {
 public:
  // How often it changes the CPU until begin_look() is called again: each time costs some 20 us, and takes 100.
  static constexpr int kMostMoves = 8;
  // Sleeps for so many nanoseconds.
  using Rest = std::function<void(std::int64_t)>;

  explicit SharedCpu(Rest rest = nullptr);

  void begin_look() { moves_ = 0; }
  // Goes to where the thread is, if need be. `schedule` and then `place` were read a moment ago. None if the thread
  // waits, or cannot be stood beside: it is scheduled in real time, so that we would not come to its CPU; it is on a
  // CPU where we may not run; it moves.
  std::optional<Standing> stand_beside(const os::ThreadProbe& probe, std::optional<os::Schedule> schedule,
                                       std::optional<os::Place> place);
  std::optional<Standing> stand_beside(const os::ThreadProbe& probe) {
    const std::optional<os::Schedule> schedule = probe.schedule();
    return stand_beside(probe, schedule, probe.place());
  }

 private:
  os::CpuSeat seat_;
  int moves_ = 0;
  Rest rest_;
  std::uint64_t random_;
};

}  // namespace plimsoll::remote
