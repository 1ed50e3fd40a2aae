// cli/render_flat.h: functions by weight, as text.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "profile/flat.h"

namespace plimsoll::cli {

// Which time puts a function first.
enum class SortBy { kSelf, kTotal };

// What to show of the table.
struct FlatOptions {
  SortBy sort = SortBy::kSelf;
  std::size_t limit = 30;  // 0 = all
};

// The functions of a profile, heaviest first.
std::vector<profile::FlatRow> flat_rows(const profile::Profile& profile, SortBy sort);

// The table of the first rows, as many as the limit allows, and a line about the rest.
std::string render_flat(const profile::Profile& profile, const std::vector<profile::FlatRow>& rows,
                        const FlatOptions& options, const Page& page);

}  // namespace plimsoll::cli
