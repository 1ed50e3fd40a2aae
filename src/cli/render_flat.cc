// cli/render_flat.cc: flat rows -> table.
#include "cli/render_flat.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/place.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/utf8.h"
#include "profile/stack_totals.h"

namespace plimsoll::cli {
namespace {

std::size_t bar_cells(const Page& page) { return page.width >= 100 ? 10 : 4; }

std::string left_out(const std::vector<profile::FlatRow>& rows, std::size_t shown, std::int64_t all_ns,
                     const Page& page) {
  if (shown == rows.size()) return {};
  std::int64_t self_ns = 0;
  for (std::size_t i = shown; i < rows.size(); ++i) self_ns += rows[i].self_ns;
  const std::size_t count = rows.size() - shown;
  const std::string line = fmt::format(
      "not shown: {} function{} with {} self time together, {} % (--limit 0 shows all)", format_count(count),
      count == 1 ? "" : "s", format_time(self_ns), format_percent(percent_of(self_ns, all_ns)));
  return "\n" + page.paint(Style::kDim, cut_right(line, page.width)) + "\n";
}

}  // namespace

std::vector<profile::FlatRow> flat_rows(const profile::Profile& profile, SortBy sort) {
  std::vector<profile::FlatRow> rows = profile::flat(profile);
  // In a list whose own times are to add up to the whole.
  if (const profile::StackWeight none = profile::weights_of_stacks(profile).no_stack; none.count > 0)
    rows.push_back({FunctionId{}, 0, none.weight, none.weight, none.count, none.count});
  const auto key = [sort](const profile::FlatRow& row) {
    return sort == SortBy::kTotal ? std::pair(row.total_ns, row.self_ns) : std::pair(row.self_ns, row.total_ns);
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const profile::FlatRow& a, const profile::FlatRow& b) { return key(a) > key(b); });
  return rows;
}

std::string render_flat(const profile::Profile& profile, const std::vector<profile::FlatRow>& rows,
                        const FlatOptions& options, const Page& page) {
  const std::int64_t all_ns = profile.sampled_ns();
  const TimeScale scale(all_ns);
  const bool by_self = options.sort == SortBy::kSelf;
  Table table({{by_self ? "self %" : "total %", Fit::kRight},
               {"", Fit::kLeft},
               {fmt::format("self {}", scale.unit()), Fit::kRight},
               {fmt::format("total {}", scale.unit()), Fit::kRight},
               {"samples", Fit::kRight},
               {"function", Fit::kCutRight},
               {"where", Fit::kCutLeft}});
  // Bars compare rows with each other; the percentages beside them are of the total.
  const std::int64_t largest_ns = rows.empty() ? 0 : by_self ? rows[0].self_ns : rows[0].total_ns;
  const std::size_t shown = options.limit == 0 ? rows.size() : std::min(rows.size(), options.limit);
  for (std::size_t i = 0; i < shown; ++i) {
    const profile::FlatRow& row = rows[i];
    const std::int64_t sorted_ns = by_self ? row.self_ns : row.total_ns;
    const double percent = percent_of(sorted_ns, all_ns);
    const ShownPath place = place_of(profile, row.function, 0, page.directory);
    table.add_row({{{format_percent(percent), heat(percent)}},
                   {{bar(percent_of(sorted_ns, largest_ns) / 100, bar_cells(page)), heat(percent)}},
                   {{scale.format(row.self_ns)}},
                   {{scale.format(row.total_ns)}},
                   {{format_count(by_self ? row.self_samples : row.total_samples), Style::kDim}},
                   {{function_name(profile, row.function), place.is_library ? Style::kPlain : Style::kStrong}},
                   {{place.text, Style::kDim}}});
  }
  return table.render(page) + left_out(rows, shown, all_ns, page);
}

}  // namespace plimsoll::cli
