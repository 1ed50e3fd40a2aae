// cli/render_diff.h: a comparison of two profiles as text and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal.h"
#include "cli/units.h"
#include "profile/diff.h"

namespace plimsoll::cli {

// What is shown of a comparison.
struct DiffOptions {
  bool by_total = false;   // functions and lines: with what they call
  bool show_all = false;   // also what may be chance
  std::size_t limit = 30;  // rows; 0 = all
  Quantity quantity = Quantity::kTime;
  bool is_exact = false;  // nothing is an estimate, and no change may be chance
};

// Two lines: both totals, and what to make of their difference.
std::string render_change(const profile::TimeChange& total, const DiffOptions& options, const Page& page);
// A table of the rows whose change is beyond chance, largest first, and a line on those that are left out. `all`: of
// the whole, which may be beyond chance where no row is.
std::string render_changed_rows(const profile::TimeChange& all, const std::vector<profile::ChangedRow>& rows,
                                const DiffOptions& options, const Page& page);
// The call tree, as far as something below a node has changed beyond chance.
std::string render_changed_tree(const std::vector<profile::ChangedNode>& tree, const DiffOptions& options,
                                const Page& page);
// {"schema":1,"total":{...},"<view>":[...]}: all rows, with what was measured and whether it is beyond chance.
// Of memory with its view, `memory`.
std::string diff_json(const profile::Comparison& comparison, std::string_view view, std::string_view memory = {});

}  // namespace plimsoll::cli
