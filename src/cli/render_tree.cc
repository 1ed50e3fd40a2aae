// cli/render_tree.cc: tree lines -> table.
#include "cli/render_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/place.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/utf8.h"

namespace plimsoll::cli {
namespace {

// How far a level of forks is indented. The first that leaves room for names is used for the whole tree, so that lines
// of one level stay below each other.
struct Indent {
  std::string_view open, closed, below_only_callee;  // rails
  std::string_view only_callee, middle, last;        // joints
};
constexpr std::array<Indent, 3> kIndents = {
    {{"│  ", "   ", "  ", "↳ ", "├─ ", "└─ "}, {"│ ", "  ", " ", "↳ ", "├ ", "└ "}, {"│", " ", "", "↳ ", "├ ", "└ "}}};

std::string_view joint_text(Joint joint, const Indent& indent) {
  switch (joint) {
    case Joint::kRoot: return "";
    case Joint::kOnlyCallee: return indent.only_callee;
    case Joint::kMiddle: return indent.middle;
    case Joint::kLast: return indent.last;
  }
  return "";
}

std::string rails_text(const TreeRow& row, const Indent& indent) {
  std::string text;
  for (const char rail : row.rails)
    text += rail == '|' ? indent.open : rail == '.' ? indent.below_only_callee : indent.closed;
  return text;
}

// (Also in a pipe, which has no width, a deep tree is not to be mostly blanks.)
std::size_t most_rail_cells(const Page& page) { return std::min<std::size_t>(page.width * 3 / 10, 60); }

const Indent& indent_for(const TreeView& view, const Page& page) {
  for (const Indent& indent : kIndents) {
    const bool fits = std::all_of(view.rows.begin(), view.rows.end(), [&](const TreeRow& row) {
      return display_width(rails_text(row, indent)) <= most_rail_cells(page);
    });
    if (fits) return indent;
  }
  return kIndents.back();
}

// Rails and joint. Where even the least indentation is too much for the page, the outer rails give way to "…".
std::string branches(const TreeRow& row, const Indent& indent, const Page& page) {
  return cut_left(rails_text(row, indent), most_rail_cells(page)) + std::string(joint_text(row.joint, indent));
}

// Branches are drawn already.
Cell name_cell(const profile::Profile& profile, const TreeRow& row, FunctionId function, std::string branch,
               const TreeOptions& options) {
  Cell cell = {{std::move(branch), Style::kDim}};
  switch (row.kind) {
    case RowKind::kHidden:
      cell.push_back(
          {fmt::format("{} {} under {:g} % each", row.count,
                       options.direction == Direction::kToCallers ? "callers" : "callees", options.min_percent),
           Style::kDim});
      break;
    case RowKind::kFolded: cell.push_back({fmt::format("{} frames of {}", row.count, row.library), Style::kDim}); break;
    case RowKind::kCall: {
      const bool is_library = !library_of(profile, function).empty();
      cell.push_back({function_name(profile, function), is_library ? Style::kPlain : Style::kStrong});
      if (row.via > 0) cell.push_back({fmt::format(" via {} frames of {}", row.via, row.library), Style::kDim});
      if (row.count > 1) cell.push_back({fmt::format(" ×{}", row.count), Style::kDim});
    }
  }
  return cell;
}

std::string left_out(const TreeView& view, const TreeOptions& options, const Page& page) {
  std::string out;
  const auto add = [&](std::uint64_t nodes, const std::string& why) {
    if (nodes == 0) return;
    const std::string line = fmt::format("not shown: {} node{} {}", format_count(nodes), nodes == 1 ? "" : "s", why);
    out += page.paint(Style::kDim, cut_right(line, page.width)) + "\n";
  };
  add(view.light_nodes, fmt::format("under {:g} % (--min-percent 0 shows all)", options.min_percent));
  add(view.deep_nodes, fmt::format("deeper than {} calls (--depth)", options.depth));
  return out;
}

}  // namespace

std::string render_tree(const profile::Profile& profile, const profile::Tree& tree, const TreeView& view,
                        const TreeOptions& options, const Page& page) {
  const std::int64_t all_ns = tree.nodes[0].total_ns;
  const TimeScale scale(all_ns, options.quantity);
  const bool has_margins = !options.margins.empty();
  std::vector<Column> columns{{"total %", Fit::kRight}, {fmt::format("total {}", scale.unit()), Fit::kRight}};
  if (has_margins) columns.push_back({"± %", Fit::kRight});
  const bool has_self = options.direction == Direction::kToCallees;
  if (has_self) columns.push_back({fmt::format("self {}", scale.unit()), Fit::kRight});
  columns.push_back({"function", Fit::kCutRight});
  columns.push_back({"where", Fit::kCutLeft});
  Table table(std::move(columns));
  const Indent& indent = indent_for(view, page);
  std::string total_above;
  for (const TreeRow& row : view.rows) {
    const profile::TreeNode& node = tree.nodes[row.node];
    const double percent = percent_of(row.total_ns, all_ns);
    const std::string total = scale.format(row.total_ns);
    // A call that passes all time on has the numbers of its caller: what differs shall catch the eye.
    const bool is_repeated = row.joint == Joint::kOnlyCallee && total == total_above;
    const bool has_place = row.kind == RowKind::kCall;
    std::vector<Cell> cells{{{format_percent(percent), is_repeated ? Style::kDim : heat(percent)}},
                            {{total, is_repeated ? Style::kDim : Style::kPlain}}};
    if (has_margins) cells.push_back({{format_percent(100 * options.margins[row.node]), Style::kDim}});
    if (has_self) cells.push_back({{scale.format(row.self_ns), heat(percent_of(row.self_ns, all_ns))}});
    cells.push_back(name_cell(profile, row, node.function, branches(row, indent, page), options));
    cells.push_back({{has_place ? place_of(profile, node.function, node.line, page.directory).text : "", Style::kDim}});
    table.add_row(std::move(cells));
    total_above = total;
  }
  std::string out = table.render(page);
  const std::string notes = left_out(view, options, page);
  return notes.empty() ? out : out + "\n" + notes;
}

}  // namespace plimsoll::cli
