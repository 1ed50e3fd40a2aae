// cli/activity_columns.h: columns that say what threads did, of rows with a time for each activity.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/activity.h"
#include "cli/units.h"

namespace plimsoll::cli {

// What any of the rows holds, kRunning first; empty if it is nothing else.
template <typename Row>
std::vector<Activity> activities_in(const std::vector<Row>& rows) {
  std::vector<Activity> found;
  for (std::size_t i = 0; i < kActivityCount; ++i)
    if (std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return row.by_activity[i] > 0; }))
      found.push_back(static_cast<Activity>(i));
  const bool only_running = found.size() == 1 && found.front() == Activity::kRunning;
  return only_running ? std::vector<Activity>{} : found;
}

// The percentage of the row's own time.
template <typename Row>
std::string share_of(const Row& row, Activity activity) {
  const std::int64_t ns = row.by_activity[static_cast<std::size_t>(activity)];
  return ns == 0 ? "" : format_percent(percent_of(ns, row.sampled_ns));
}

}  // namespace plimsoll::cli
