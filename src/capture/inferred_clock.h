// capture/inferred_clock.h: a thread's CPU clock as its own ticks know it, mostly without the system call that reads
// it.
//
// A task-clock tick comes once the thread has used its period of CPU time. If no more time of day than that has passed
// since the last tick, the thread has run all the while: both clocks have gone on alike. Only a thread that has waited
// in between, or was late, needs the system call, which takes longer than a tick's own work. What is inferred is off
// by the tolerance at most, and is settled by a reading after a few ticks.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace plimsoll::capture {

// For the ticks of one thread, whose handler alone calls infer, read and vary. restart and last_read_ns are for any
// thread. Nanoseconds, all. Async-signal-safe.
class InferredClock {
 public:
  // From now on a tick comes each `period_ns`; what was known of the ticks before is not.
  void restart(std::int64_t period_ns) noexcept {
    left_.store(0, std::memory_order_relaxed);
    period_ns_.store(period_ns, std::memory_order_relaxed);
  }
  // The next tick comes so long after the one that is being handled.
  void vary(std::int64_t period_ns) noexcept { period_ns_.store(period_ns, std::memory_order_relaxed); }

  // The CPU clock at a tick that is handled at `now_ns` (CLOCK_MONOTONIC), or nothing if it must be read.
  std::optional<std::int64_t> infer(std::int64_t now_ns) noexcept {
    const std::uint32_t left = left_.load(std::memory_order_relaxed);
    const std::int64_t passed_ns = now_ns - now_ns_;
    const std::int64_t period_ns = period_ns_.load(std::memory_order_relaxed);
    const std::int64_t tolerance_ns = period_ns / kTolerance + kHandling;
    if (left == 0 || passed_ns < period_ns - tolerance_ns || passed_ns > period_ns + tolerance_ns) return std::nullopt;
    left_.store(left - 1, std::memory_order_relaxed);
    now_ns_ = now_ns;
    cpu_ns_ += passed_ns;
    return cpu_ns_;
  }
  // It was read at `now_ns`.
  void read(std::int64_t now_ns, std::int64_t cpu_ns) noexcept {
    now_ns_ = now_ns;
    cpu_ns_ = cpu_ns;
    last_read_ns_.store(cpu_ns, std::memory_order_relaxed);
    left_.store(kTicksWithoutReading, std::memory_order_relaxed);
  }
  // The CPU clock at the last tick, for the handler.
  [[nodiscard]] std::int64_t cpu_ns() const noexcept { return cpu_ns_; }
  // What it was when it was last read: the thread's clock is not behind this.
  [[nodiscard]] std::int64_t last_read_ns() const noexcept { return last_read_ns_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kTicksWithoutReading = 7;
  static constexpr std::int64_t kTolerance = 32;    // a part of the period
  static constexpr std::int64_t kHandling = 2'000;  // ns, by which a tick's way to its handler varies, at least

  std::atomic<std::uint32_t> left_{0};
  std::atomic<std::int64_t> period_ns_{0};
  std::atomic<std::int64_t> last_read_ns_{0};
  std::int64_t now_ns_ = 0;
  std::int64_t cpu_ns_ = 0;
};

}  // namespace plimsoll::capture
