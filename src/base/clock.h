// base/clock.h: the clocks of a sample. All are async-signal-safe.
#pragma once

#include <time.h>

#include <cstdint>

namespace plimsoll {

// The value of a POSIX clock in nanoseconds; 0 if the clock does not exist (for example, its thread has ended).
inline std::int64_t clock_ns(clockid_t clock) {
  timespec now{};
  if (::clock_gettime(clock, &now) != 0) return 0;
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// Nanoseconds as the kernel takes them.
constexpr timespec timespec_of(std::int64_t ns) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  return {static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
}

// Time since boot without suspend, in nanoseconds; comparable between the threads and processes of one machine.
inline std::int64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }
// Time of day in nanoseconds since 1970-01-01 UTC.
inline std::int64_t realtime_ns() { return clock_ns(CLOCK_REALTIME); }
// CPU time of the calling thread, user and system, in nanoseconds. A system call.
inline std::int64_t thread_cpu_ns() { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }
// CPU time of all threads of the process, living and dead, in nanoseconds. A system call.
inline std::int64_t process_cpu_ns() { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

}  // namespace plimsoll
