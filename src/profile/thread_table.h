// profile/thread_table.h: the processes and threads that samples belong to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace plimsoll::profile {

// A profiled process.
struct Process {
  std::int64_t pid = 0;
  std::int64_t parent_pid = 0;
  std::string name;  // the command line, shortened for display by whoever shows it
};

// The name of a thread that stands for all of them, in a recording that does not tell them apart. Its id is 0.
inline constexpr std::string_view kAllThreads = "all threads";

// A profiled thread. Times are monotonic nanoseconds since the start of the profile (Profile::start_monotonic_ns).
struct Thread {
  ProcessId process;        // never none in a profile that was read
  std::int64_t os_tid = 0;  // the kernel's id; may be reused by a later thread
  std::string name;         // threading's name, else the kernel's; empty = unknown
  bool is_main = false;
  std::int64_t start_ns = 0;  // first seen
  std::int64_t end_ns = 0;    // last seen
  std::int64_t cpu_ns = 0;    // CPU time that the thread used while it was profiled, by its own clock
  bool operator==(const Thread&) const = default;
};

}  // namespace plimsoll::profile
