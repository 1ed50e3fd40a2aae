// cli/memory_report.h: sampled allocations as text and as JSON: who allocated, what is alive, what was at the peak.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/terminal.h"
#include "cli/tree_view.h"
#include "profile/filter.h"
#include "profile/memory.h"

namespace plimsoll::cli {

// What is to be said of an exact recording that did not come to its end, or has lost something, as a line; nothing of
// others.
std::string what_exact_lacks(const profile::Profile& profile);

// "alloc", "live", "peak", "leaks" and "temporary"; nothing for any other word.
std::optional<profile::MemoryView> memory_view_named(std::string_view name);

// How a view is shown.
struct MemoryOptions {
  profile::MemoryQuestion question = profile::MemoryView::kLive;
  // Callers above callees, functions by what they allocate, or types of objects.
  enum class Shape { kTree, kFlat, kTypes } shape = Shape::kTree;
  TreeOptions tree;
  profile::Granularity granularity = profile::Granularity::kFunction;
  std::size_t limit = 30;   // rows of kFlat and kTypes; 0 = all
  bool is_of_part = false;  // of the recording's allocations only some are left
  // Of sums, where those of a stretch of time are left: when the sums were taken that are told of its ends.
  std::optional<profile::MemoryWindow> sums_of;
};

// May replace the profile's samples. With a heading that says what the numbers are, and how sure.
std::string memory_text(profile::Profile& profile, MemoryOptions options, const Page& page);
std::string memory_json(const profile::Profile& profile, const MemoryOptions& options);

// Memory over time (memory_timeline.cc): what the process has, what Python's allocators have given out and not got
// back, and who asked for most of it. One row per moment, the last one at the end of the window.
struct TimelineOptions {
  std::size_t moments = 20;
  profile::MemoryWindow window;
};
std::string timeline_text(const profile::Profile& profile, const TimelineOptions& options, const Page& page);
std::string timeline_json(const profile::Profile& profile, const TimelineOptions& options);

}  // namespace plimsoll::cli
