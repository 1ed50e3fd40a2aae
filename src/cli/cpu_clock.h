// cli/cpu_clock.h: what a process's CPU clock showed at what time of day, as its parent has noted it.
//
// PyPy's sampler has the CPU clock alone, which stands still while the program waits; all else has the time of day.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "os/process.h"

namespace plimsoll::cli {

// A clock as moments by both clocks, of which those are kept that it takes to tell the time of day to 5 ms; of a
// program that runs for days less exactly, in a few megabytes. Before the first moment and after the last the CPU clock
// is taken to run as fast as the time of day.
class CpuClock {
 public:
  CpuClock(std::int64_t cpu_ns, std::int64_t realtime_ns) : notes_{{cpu_ns, realtime_ns}} {}

  // In the order of time. What goes backwards is left out: the time of day can be set.
  void note(std::int64_t cpu_ns, std::int64_t realtime_ns);

  // The time of day when it came to show that.
  [[nodiscard]] std::int64_t time_of(std::int64_t cpu_ns) const;
  // What it showed at a time of day.
  [[nodiscard]] std::int64_t cpu_at(std::int64_t realtime_ns) const;
  [[nodiscard]] std::int64_t last_cpu_ns() const { return notes_.back().cpu_ns; }
  // How many moments are kept.
  [[nodiscard]] std::size_t size() const { return notes_.size(); }

 private:
  // A moment by both clocks.
  struct Note {
    std::int64_t cpu_ns = 0, realtime_ns = 0;
  };
  // How steep a line may be, time by CPU time, from the last moment but one to the next.
  struct Slopes {
    double flattest = 0, steepest = 0;
  };
  using Axis = std::int64_t Note::*;
  // From what one of the clocks showed to what the other one did.
  [[nodiscard]] std::int64_t convert(std::int64_t at, Axis from, Axis to) const;
  [[nodiscard]] bool replaces_last(const Note& next) const;
  void add(const Note& next);
  void thin_out();

  // From each moment to the next goes a line that is near all that were noted between them.
  std::vector<Note> notes_;
  Slopes slopes_;
  double tolerance_ns_ = 5e6;
};

// The clocks of a program and of the processes that it has started.
struct CpuClocks {
  os::Pid program{};
  std::unordered_map<os::Pid, CpuClock> of;
};

// Whose clocks are noted.
enum class Watched : std::uint8_t { kProgram, kDescendants };

// Notes clocks every 5 ms until the program has ended; those of its descendants from 50 ms after their start on.
CpuClocks watch_cpu_clocks(os::Pid program, Watched watched);

}  // namespace plimsoll::cli
