#include "cli/render_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "cli/json_document.h"
#include "cli/place.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/utf8.h"
#include "formats/json.h"

namespace plimsoll::cli {
namespace {

using formats::JsonWriter;
using profile::ChangedNode;
using profile::ChangedRow;
using profile::TimeChange;

// "+18.8", "-3.0", with the unit behind it; "new" and "gone" where there is nothing to compare with.
std::string percent_text(const TimeChange& change, std::string_view unit = "") {
  if (change.before_ns == 0) return change.after_ns == 0 ? "" : "new";
  if (change.after_ns == 0) return "gone";
  return fmt::format("{:+.1f}{}",
                     100.0 * static_cast<double>(change.change_ns()) / static_cast<double>(change.before_ns), unit);
}

std::string signed_text(const TimeScale& scale, std::int64_t ns) {
  if (ns == 0) return scale.format(0);
  return (ns > 0 ? "+" : "-") + scale.format(std::abs(ns));
}

Style style_of(const TimeChange& change) {
  if (!change.is_beyond_chance) return Style::kDim;
  return change.change_ns() > 0 ? Style::kHot : Style::kCool;
}

std::string function_text(const std::string& function) { return function.empty() ? "[no name]" : printable(function); }

std::string place_text(const std::string& file, std::uint32_t line, const Page& page) {
  if (file.empty()) return "";
  const std::string path = printable(shown_path(file, page.directory).text);
  return line == 0 ? path : fmt::format("{}:{}", path, line);
}

// The columns of numbers that every view begins with.
std::vector<Cell> number_cells(const TimeChange& change, const TimeScale& scale) {
  return {{{signed_text(scale, change.change_ns()), style_of(change)}},
          {{percent_text(change), style_of(change)}},
          {{scale.format(change.before_ns)}},
          {{scale.format(change.after_ns)}}};
}

std::vector<Column> number_columns(const TimeScale& scale) {
  return {{fmt::format("change {}", scale.unit()), Fit::kRight},
          {"%", Fit::kRight},
          {fmt::format("before {}", scale.unit()), Fit::kRight},
          {fmt::format("after {}", scale.unit()), Fit::kRight}};
}

std::string left_out(std::size_t count, std::string_view what, const Page& page) {
  if (count == 0) return {};
  return "\n" + page.paint(Style::kDim, fmt::format("{} {}", format_count(count), what)) + "\n";
}

constexpr std::string_view kNothing = "nothing has changed beyond chance\n";
constexpr std::string_view kNoneStandsOut = "no single row has changed beyond chance; the largest changes:\n\n";
constexpr std::string_view kNoPathStandsOut =
    "no single call path has changed beyond chance (the view flat has the largest changes)\n";
constexpr std::string_view kChance = "more have changed by no more than chance may (--all shows them)";
constexpr std::string_view kUnchanged = "more have not changed (--all shows them)";

std::string_view nothing_of(const DiffOptions& options) {
  return options.is_exact ? std::string_view("nothing has changed\n") : kNothing;
}
std::string_view rest_of(const DiffOptions& options) { return options.is_exact ? kUnchanged : kChance; }

void put_change(JsonWriter& json, std::string_view name, const TimeChange& change, Quantity quantity) {
  const bool is_time = quantity == Quantity::kTime;
  json.key(name);
  json.begin_object();
  json.member(is_time ? "before_ns" : "before_bytes", change.before_ns);
  json.member(is_time ? "after_ns" : "after_bytes", change.after_ns);
  json.member(is_time ? "error_ns" : "error_bytes", std::llround(change.error_ns));
  json.key("beyond_chance");
  json.boolean(change.is_beyond_chance);
  json.end_object();
}

// Nodes of a tree in the order in which they are shown.
class TreeRows {
 public:
  TreeRows(const std::vector<ChangedNode>& tree, const DiffOptions& options) : tree_(tree), options_(options) {
    matters_.resize(tree.size());
    for (std::size_t i = tree.size(); i-- > 0;) {
      const bool below = std::any_of(tree[i].children.begin(), tree[i].children.end(),
                                     [&](std::size_t child) { return matters_[child]; });
      matters_[i] = below || tree[i].total.is_beyond_chance || options.show_all;
    }
  }
  template <typename Visit>
  void visit(Visit visit_node) const {
    std::vector<std::pair<std::size_t, std::size_t>> open;  // node, depth
    const auto push_children = [&](std::size_t node, std::size_t depth) {
      const auto& children = tree_[node].children;
      for (auto child = children.rbegin(); child != children.rend(); ++child)
        if (matters_[*child]) open.emplace_back(*child, depth);
    };
    push_children(0, 0);
    for (std::size_t shown = 0; !open.empty() && (options_.limit == 0 || shown < options_.limit); ++shown) {
      const auto [node, depth] = open.back();
      open.pop_back();
      visit_node(tree_[node], depth);
      push_children(node, depth + 1);
    }
  }
  [[nodiscard]] std::size_t without_news() const {
    return static_cast<std::size_t>(std::count(matters_.begin() + 1, matters_.end(), false));
  }

 private:
  const std::vector<ChangedNode>& tree_;
  const DiffOptions& options_;
  std::vector<bool> matters_;
};

}  // namespace

std::string render_change(const TimeChange& total, const DiffOptions& options, const Page& page) {
  const bool is_time = options.quantity == Quantity::kTime;
  const auto amount = [&](std::int64_t of) { return is_time ? format_time(of) : format_bytes(of); };
  const std::string_view verdict = options.is_exact         ? ""
                                   : total.is_beyond_chance ? ": beyond chance"
                                                            : ": no more than chance may do";
  const std::string percent = percent_text(total, " %");
  const std::string change = fmt::format("{}{} ({})", total.change_ns() < 0 ? "-" : "+",
                                         amount(std::abs(total.change_ns())), percent.empty() ? "0.0 %" : percent);
  return fmt::format("before {}, after {}\n", amount(total.before_ns), amount(total.after_ns)) +
         page.paint(style_of(total), change) + std::string(verdict) + "\n\n";
}

std::string render_changed_rows(const TimeChange& all, const std::vector<ChangedRow>& rows, const DiffOptions& options,
                                const Page& page) {
  const auto change_of = [&](const ChangedRow& row) { return options.by_total ? row.total : row.self; };
  std::vector<const ChangedRow*> shown;
  std::int64_t largest_ns = 0;
  for (const ChangedRow& row : rows) {
    largest_ns = std::max({largest_ns, change_of(row).before_ns, change_of(row).after_ns});
    if (options.show_all || change_of(row).is_beyond_chance) shown.push_back(&row);
  }
  // Many changes that each may be chance can be none together: then the largest are shown.
  const bool none_stands_out = shown.empty() && all.is_beyond_chance;
  if (none_stands_out)
    for (const ChangedRow& row : rows) shown.push_back(&row);
  std::stable_sort(shown.begin(), shown.end(), [&](const ChangedRow* a, const ChangedRow* b) {
    return std::abs(change_of(*a).change_ns()) > std::abs(change_of(*b).change_ns());
  });
  constexpr std::size_t kLargest = 5;
  if (none_stands_out) shown.resize(std::min(shown.size(), kLargest));
  const std::size_t by_chance = rows.size() - shown.size();
  const std::size_t cut = options.limit != 0 && shown.size() > options.limit ? shown.size() - options.limit : 0;
  shown.resize(shown.size() - cut);
  const TimeScale scale(largest_ns, options.quantity);
  std::vector<Column> columns = number_columns(scale);
  columns.insert(columns.end(), {{"function", Fit::kCutRight}, {"where", Fit::kCutLeft}});
  Table table(std::move(columns));
  for (const ChangedRow* row : shown) {
    std::vector<Cell> cells = number_cells(change_of(*row), scale);
    cells.push_back({{function_text(row->function), Style::kStrong}});
    cells.push_back({{place_text(row->file, row->line, page), Style::kDim}});
    table.add_row(std::move(cells));
  }
  const std::string_view title = none_stands_out ? kNoneStandsOut
                                 : table.empty() ? nothing_of(options)
                                                 : std::string_view{};
  return std::string(title) + (table.empty() ? "" : table.render(page)) +
         left_out(cut, "more rows (--limit 0 shows all)", page) + left_out(by_chance, rest_of(options), page);
}

std::string render_changed_tree(const std::vector<ChangedNode>& tree, const DiffOptions& options, const Page& page) {
  const TreeRows rows(tree, options);
  const TimeScale scale(std::max(tree[0].total.before_ns, tree[0].total.after_ns), options.quantity);
  std::vector<Column> columns = number_columns(scale);
  columns.insert(columns.end(), {{"function", Fit::kCutRight}, {"where", Fit::kCutLeft}});
  Table table(std::move(columns));
  rows.visit([&](const ChangedNode& node, std::size_t depth) {
    std::vector<Cell> cells = number_cells(node.total, scale);
    const Style style = node.total.is_beyond_chance ? Style::kStrong : Style::kPlain;
    cells.push_back({{std::string(2 * std::min<std::size_t>(depth, 40), ' ') + function_text(node.function), style}});
    cells.push_back({{place_text(node.file, 0, page), Style::kDim}});
    table.add_row(std::move(cells));
  });
  const std::string_view title = !table.empty()                   ? ""
                                 : tree[0].total.is_beyond_chance ? kNoPathStandsOut
                                                                  : nothing_of(options);
  return std::string(title) + (table.empty() ? "" : table.render(page)) +
         left_out(rows.without_news(), rest_of(options), page);
}

std::string diff_json(const profile::Comparison& comparison, std::string_view view, std::string_view memory) {
  const Quantity quantity = memory.empty() ? Quantity::kTime : Quantity::kBytes;
  std::string out;
  JsonWriter json(out);
  const auto put_row = [&](const ChangedRow& row) {
    json.begin_object();
    json.member("function", row.function);
    json.member("file", row.file);
    json.member("line", std::int64_t{row.line});
    put_change(json, "self", row.self, quantity);
    put_change(json, "total", row.total, quantity);
    json.end_object();
  };
  begin_document(json);
  json.member("view", view);
  if (!memory.empty()) json.member("memory", memory);
  put_change(json, "total", comparison.total, quantity);
  if (view == "flat") json.column(view, comparison.functions, put_row);
  if (view == "lines") json.column(view, comparison.lines, put_row);
  if (view == "tree")
    json.column(view, comparison.tree, [&](const ChangedNode& node) {
      json.begin_object();
      json.member("function", node.function);
      json.member("file", node.file);
      put_change(json, "self", node.self, quantity);
      put_change(json, "total", node.total, quantity);
      json.column("children", node.children,
                  [&](std::size_t child) { json.integer(static_cast<std::int64_t>(child)); });
      json.end_object();
    });
  json.end_object();
  return out + "\n";
}

}  // namespace plimsoll::cli
