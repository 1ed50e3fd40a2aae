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

// "alloc", "live" and "peak"; nothing for any other word.
std::optional<profile::MemoryView> memory_view_named(std::string_view name);

// How a view is shown.
struct MemoryOptions {
  // Callers above callees, or functions by what they allocate.
  enum class Shape { kTree, kFlat } shape = Shape::kTree;
  TreeOptions tree;
  profile::Granularity granularity = profile::Granularity::kFunction;
  std::size_t limit = 30;  // rows of kFlat; 0 = all
};

// Each replaces the profile's samples. With a heading that says what the numbers are, and how sure.
std::string memory_text(profile::Profile& profile, profile::MemoryView view, MemoryOptions options, const Page& page);
std::string memory_json(profile::Profile& profile, profile::MemoryView view, const MemoryOptions& options);

}  // namespace plimsoll::cli
