// cli/thread_report.h: what each thread did, and when.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "profile/profile.h"

namespace plimsoll::cli {

// What the samples say of one thread.
struct ThreadRow {
  ThreadId thread;
  std::int64_t sampled_ns = 0;  // CPU time of its samples
  std::uint64_t samples = 0;
  std::int64_t first_ns = 0;  // time of its first and last sample
  std::int64_t last_ns = 0;
  std::vector<std::int64_t> activity_ns;  // sampled CPU time in equal parts of the session
};

// Threads with the most sampled CPU time first; one without samples has its times from the thread table.
std::vector<ThreadRow> thread_report(const profile::Profile& profile, std::size_t activity_parts);

// How many parts of a session the page has room for.
std::size_t activity_parts(const Page& page);

// The table of the rows, with a strip that shows how busy a thread was over the session.
std::string render_threads(const profile::Profile& profile, const std::vector<ThreadRow>& rows, const Page& page);

}  // namespace plimsoll::cli
