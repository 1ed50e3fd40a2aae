// profile/sample_table.h: the samples as columns of equal length.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "base/activity.h"
#include "base/ids.h"

namespace plimsoll::profile {

// Row i: thread[i] was on stack[i] at time_ns[i], and stands for weight_ns[i] of its time, spent in activity[i].
// Weights are measured, not assumed: CPU time since the thread's previous sample, or time waited. Recordings of CPU
// time have rows that are kRunning only; in those of wall-clock time the weights of a thread add up to its life. Rows
// are in order of recording, which is ordered by time per thread, and nearly so over all threads; those of other tools'
// files in the order of the file, which may be one thread after the other.
struct SampleTable {
  std::vector<std::int64_t> time_ns;  // monotonic, since the start of the profile
  std::vector<ThreadId> thread;
  std::vector<StackId> stack;  // none = the empty stack
  std::vector<std::int64_t> weight_ns;
  std::vector<Activity> activity;
  std::vector<TagSetId> tags;  // none = no tags

  [[nodiscard]] std::size_t size() const { return time_ns.size(); }
  void push_back(std::int64_t time, ThreadId on_thread, StackId on_stack, std::int64_t weight,
                 Activity in_activity = Activity::kRunning, TagSetId with_tags = {}) {
    time_ns.push_back(time);
    thread.push_back(on_thread);
    stack.push_back(on_stack);
    weight_ns.push_back(weight);
    activity.push_back(in_activity);
    tags.push_back(with_tags);
  }
  // Room for so many rows, as address space: memory is taken as they come.
  void reserve(std::size_t rows) {
    time_ns.reserve(rows);
    thread.reserve(rows);
    stack.reserve(rows);
    weight_ns.reserve(rows);
    activity.reserve(rows);
    tags.reserve(rows);
  }
  // To so many rows; new ones are to be filled by set().
  void resize(std::size_t rows) {
    time_ns.resize(rows);
    thread.resize(rows);
    stack.resize(rows);
    weight_ns.resize(rows);
    activity.resize(rows);
    tags.resize(rows);
  }
  void set(std::size_t row, std::int64_t time, ThreadId on_thread, StackId on_stack, std::int64_t weight,
           Activity in_activity, TagSetId with_tags) {
    time_ns[row] = time;
    thread[row] = on_thread;
    stack[row] = on_stack;
    weight_ns[row] = weight;
    activity[row] = in_activity;
    tags[row] = with_tags;
  }
  // Appends a row of another table of the same profile.
  void push_row(const SampleTable& from, std::size_t row) {
    push_back(from.time_ns[row], from.thread[row], from.stack[row], from.weight_ns[row], from.activity[row],
              from.tags[row]);
  }
  // Puts the rows into the order of their times; those of one time stay as they are.
  void order_by_time() {
    if (std::is_sorted(time_ns.begin(), time_ns.end())) return;
    std::vector<std::uint32_t> order(size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return time_ns[a] < time_ns[b]; });
    SampleTable sorted;
    sorted.reserve(size());
    for (const std::uint32_t row : order) sorted.push_row(*this, row);
    *this = std::move(sorted);
  }
  // Bytes of a row.
  static constexpr std::size_t kRowBytes =
      2 * sizeof(std::int64_t) + sizeof(ThreadId) + sizeof(StackId) + sizeof(Activity) + sizeof(TagSetId);
  void clear() {
    time_ns.clear();
    thread.clear();
    stack.clear();
    weight_ns.clear();
    activity.clear();
    tags.clear();
  }
};

}  // namespace plimsoll::profile
