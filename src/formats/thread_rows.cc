// formats/thread_rows.cc: one pass to count, one to fill.
#include "formats/thread_rows.h"

#include <algorithm>

namespace plimsoll::formats {

std::vector<std::vector<std::uint32_t>> rows_by_thread(const profile::Profile& profile) {
  const profile::SampleTable& samples = profile.samples;
  std::vector<std::size_t> counts(profile.threads.size());
  for (const ThreadId thread : samples.thread) ++counts[thread.index()];

  std::vector<std::vector<std::uint32_t>> rows(profile.threads.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].reserve(counts[i]);
  for (std::size_t row = 0; row < samples.size(); ++row)
    rows[samples.thread[row].index()].push_back(static_cast<std::uint32_t>(row));

  // The table promises this order. A file from elsewhere may not keep the promise, and viewers rely on it.
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) { return samples.time_ns[a] < samples.time_ns[b]; };
  for (std::vector<std::uint32_t>& of_thread : rows)
    if (!std::is_sorted(of_thread.begin(), of_thread.end(), earlier))
      std::stable_sort(of_thread.begin(), of_thread.end(), earlier);
  return rows;
}

std::int64_t cpu_ns_of_rows(const profile::Profile& profile, const std::vector<std::uint32_t>& rows) {
  std::int64_t sum = 0;
  for (const std::uint32_t row : rows) sum += profile.samples.weight_ns[row];
  return sum;
}

}  // namespace plimsoll::formats
