// cli/thread_report.h: what each thread did, and when.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/activity.h"
#include "cli/terminal.h"
#include "profile/profile.h"

namespace plimsoll::cli {

// What the samples say of one thread.
struct ThreadRow {
  ThreadId thread;
  std::int64_t sampled_ns = 0;                             // time of its samples
  std::array<std::int64_t, kActivityCount> by_activity{};  // the same, by Activity
  std::uint64_t samples = 0;
  std::int64_t first_ns = 0;  // time of its first and last sample
  std::int64_t last_ns = 0;
  std::vector<std::int64_t> busy_ns;  // sampled CPU time in equal parts of the session
};

// Threads with the most sampled time first; one without samples has its times from the thread table.
std::vector<ThreadRow> thread_report(const profile::Profile& profile, std::size_t parts);

// How many parts of a session the page has room for.
std::size_t busy_parts(const Page& page);

// The table of the rows, with a strip that shows how busy a thread was over the session. If there are waits, also what
// each thread's time went into.
std::string render_threads(const profile::Profile& profile, const std::vector<ThreadRow>& rows, const Page& page);

}  // namespace plimsoll::cli
