// base/tick_counter.h: whether some time has gone by, for less than a clock costs.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#else
#include "base/clock.h"
#endif

namespace plimsoll {

// A count that goes up with time, at a pace of the machine's own; another CPU's may be a little off. Async-signal-safe.
inline std::uint64_t tick_count() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  std::uint64_t count = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count;
#else
  return static_cast<std::uint64_t>(monotonic_ns());
#endif
}

// What it counts in about ten microseconds: 5 to 17 with clocks of 1.5 to 5 GHz.
inline std::uint64_t ticks_of_ten_us() {
#if defined(__x86_64__)
  return 25'000;
#elif defined(__aarch64__)
  std::uint64_t per_second = 0;
  asm("mrs %0, cntfrq_el0" : "=r"(per_second));
  return per_second / 100'000;
#else
  return 10'000;
#endif
}

}  // namespace plimsoll
