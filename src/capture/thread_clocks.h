// capture/thread_clocks.h: a thread's clocks at one time, and how it has spent the time between two such times. Each
// nanosecond is counted once, however late the clocks are read one after the other.
#pragma once

#include <algorithm>
#include <cstdint>

namespace plimsoll::capture {

// In nanoseconds, read in this order.
struct ThreadClocks {
  std::int64_t now_ns = 0;    // CLOCK_MONOTONIC
  std::int64_t cpu_ns = 0;    // 0: the thread has ended
  std::int64_t ready_ns = 0;  // for how long it could have run but had no CPU, as far as the kernel has counted
};

// The time of day that fits its CPU clock. That was read a moment later, or milliseconds later if whoever reads was
// put off its CPU in between: a thread that ran all the while has used more CPU time by then than time has passed.
inline ThreadClocks fitted(const ThreadClocks& before, ThreadClocks now) {
  now.now_ns = std::max(now.now_ns, before.now_ns + (now.cpu_ns - before.cpu_ns));
  return now;
}

// How the time between two looks was spent, but for CPU time.
struct TimeSpent {
  std::int64_t ready_ns = 0;
  std::int64_t wait_ns = 0;
  std::int64_t told_ns = 0;  // counted by the kernel only now, but told of before
};

// `until` is fitted to `from`. Of the time in the queue, `told_ns` was told of before the kernel counted it.
inline TimeSpent time_spent(const ThreadClocks& from, const ThreadClocks& until, std::int64_t told_ns) {
  const std::int64_t off_ns = until.now_ns - from.now_ns - (until.cpu_ns - from.cpu_ns);  // not negative, as they fit
  const std::int64_t counted_ns = std::max<std::int64_t>(until.ready_ns - from.ready_ns, 0);
  const std::int64_t known_ns = std::min(told_ns, counted_ns);
  const std::int64_t ready_ns = std::min(off_ns, counted_ns - known_ns);
  return {ready_ns, off_ns - ready_ns, known_ns};
}

}  // namespace plimsoll::capture
