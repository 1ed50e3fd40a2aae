// profile/sample_table.h: the samples as columns of equal length.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace plimsoll::profile {

// Row i: thread[i] was on stack[i] at time_ns[i], and stands for cpu_ns[i] of its CPU time.
// Rows are in order of recording, which is ordered by time per thread, and nearly so over all threads.
struct SampleTable {
  std::vector<std::int64_t> time_ns;  // monotonic, since the start of the profile
  std::vector<ThreadId> thread;
  std::vector<StackId> stack;        // none = the empty stack
  std::vector<std::int64_t> cpu_ns;  // CPU time since the thread's previous sample, measured

  [[nodiscard]] std::size_t size() const { return time_ns.size(); }
  void push_back(std::int64_t time, ThreadId on_thread, StackId on_stack, std::int64_t cpu) {
    time_ns.push_back(time);
    thread.push_back(on_thread);
    stack.push_back(on_stack);
    cpu_ns.push_back(cpu);
  }
  // Bytes of a row.
  static constexpr std::size_t kRowBytes = 2 * sizeof(std::int64_t) + sizeof(ThreadId) + sizeof(StackId);
  void clear() {
    time_ns.clear();
    thread.clear();
    stack.clear();
    cpu_ns.clear();
  }
};

}  // namespace plimsoll::profile
