// capture/tick_pace.h: keeps a thread's ticks to their rate although its timer loses a little time here and there.
//
// A task-clock event loses some microseconds each time its thread is put off a CPU and each time its period is changed,
// so that a program that sleeps a thousand times a second would get 2 to 4 of 100 samples less than it should. What was
// lost in the ticks until now is taken off the period of the next ones.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace plimsoll::capture {

// For the ticks of one thread. next() is for its handler, restart() for any thread. Nanoseconds. Async-signal-safe.
class TickPace {
 public:
  // The timer starts over: what it has lost before is settled elsewhere.
  void restart() noexcept { is_running_.store(false, std::memory_order_relaxed); }

  // `ticks` have come since the last call, the last one at `cpu_ns` on the thread's CPU clock, and as many are to come
  // until the next call, `period_ns` apart. Returns the period to set the timer to: at most an eighth away from that.
  std::int64_t next(std::int64_t cpu_ns, std::int64_t ticks, std::int64_t period_ns) noexcept {
    // A long system call makes one tick of many: those are not made up for elsewhere.
    constexpr std::int64_t kMostLate = 4;
    const bool was_running = is_running_.exchange(true, std::memory_order_relaxed);
    const std::int64_t most = kMostLate * period_ns;
    late_ns_ = was_running ? std::clamp(late_ns_ + (cpu_ns - from_ns_) - ticks * period_ns_, -most, most) : 0;
    from_ns_ = cpu_ns;
    period_ns_ = period_ns;
    constexpr std::int64_t kSmallestPart = 8;
    return period_ns - std::clamp(late_ns_ / ticks, -period_ns / kSmallestPart, period_ns / kSmallestPart);
  }

 private:
  std::atomic<bool> is_running_{false};
  std::int64_t from_ns_ = 0;
  std::int64_t period_ns_ = 0;
  std::int64_t late_ns_ = 0;
};

}  // namespace plimsoll::capture
