// cli/table.cc: layout and drawing of a Table.
#include "cli/table.h"

#include <algorithm>
#include <numeric>

#include "cli/utf8.h"

namespace plimsoll::cli {
namespace {

constexpr std::size_t kGap = 2;        // between columns
constexpr std::size_t kShortest = 8;   // what a column that may be cut keeps
constexpr std::size_t kReadable = 20;  // what it needs to say something

std::size_t width_of(const Cell& cell) {
  return std::accumulate(cell.begin(), cell.end(), std::size_t{0},
                         [](std::size_t sum, const Span& span) { return sum + display_width(span.text); });
}

bool may_be_cut(Fit fit) { return fit == Fit::kCutRight || fit == Fit::kCutLeft; }

// The part of a path that fits, from a '/' on if there is one near.
std::string cut_path(std::string_view path, std::size_t width) {
  std::string cut = cut_left(path, width);
  if (cut == path) return cut;
  const std::size_t slash = cut.find('/');
  const bool near_start = slash != std::string::npos && slash < cut.size() / 2;
  return near_start ? "…" + cut.substr(slash) : cut;
}

Cell cut(const Cell& cell, Fit fit, std::size_t width) {
  if (width_of(cell) <= width) return cell;
  // A path is one span; a name may be several (branches, name, remark).
  if (fit == Fit::kCutLeft) return {{cut_path(cell.front().text, width), cell.front().style}};
  Cell out;
  for (const Span& span : cell) {
    const std::size_t used = width_of(out);
    const bool is_last = used + display_width(span.text) >= width;
    // "…" stands for the rest of this span or for the spans after it.
    out.push_back({is_last ? cut_right(span.text + " ", width - used) : span.text, span.style});
    if (is_last) break;
  }
  return out;
}

std::string draw(const Cell& cell, Fit fit, std::size_t width, const Paint& paint) {
  const Cell shown = cut(cell, fit, width);
  const std::string padding(width - std::min(width, width_of(shown)), ' ');
  std::string text;
  for (const Span& span : shown) text += paint(span.style, span.text);
  return fit == Fit::kRight ? padding + text : text + padding;
}

void end_line(std::string& out) {
  out.erase(out.find_last_not_of(' ') + 1);
  out += '\n';
}

}  // namespace

std::vector<std::size_t> Table::natural_widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = display_width(columns_[i].title);
    for (const std::vector<Cell>& row : rows_) width = std::max(width, width_of(row[i]));
    widths.push_back(width);
  }
  return widths;
}

std::vector<std::size_t> Table::shown_columns(const std::vector<std::size_t>& natural, std::size_t page_width) const {
  std::vector<std::size_t> shown(columns_.size());
  std::iota(shown.begin(), shown.end(), std::size_t{0});
  const auto least = [&] {
    std::size_t sum = kGap * (shown.size() - 1);
    for (const std::size_t i : shown) sum += may_be_cut(columns_[i].fit) ? std::min(natural[i], kReadable) : natural[i];
    return sum;
  };
  while (least() > page_width) {
    // The last of those that are spared most easily.
    const auto chosen = std::max_element(shown.begin(), shown.end(), [&](std::size_t a, std::size_t b) {
      return columns_[a].spare <= columns_[b].spare;
    });
    if (columns_[*chosen].spare == 0) break;
    shown.erase(chosen);
  }
  return shown;
}

std::vector<std::size_t> Table::widths(const std::vector<std::size_t>& shown, const std::vector<std::size_t>& natural,
                                       std::size_t page_width) const {
  std::vector<std::size_t> widths = natural;
  std::size_t total = kGap * (shown.size() - 1);
  for (const std::size_t i : shown) total += widths[i];
  while (total > page_width) {
    std::size_t chosen = widths.size();
    // A name tells more per cell than a path does.
    const auto claim = [&](std::size_t i) { return widths[i] * (columns_[i].fit == Fit::kCutLeft ? 2 : 1); };
    for (const std::size_t i : shown) {
      const bool candidate = may_be_cut(columns_[i].fit) && widths[i] > kShortest;
      if (candidate && (chosen == widths.size() || claim(i) > claim(chosen))) chosen = i;
    }
    if (chosen == widths.size()) break;
    --widths[chosen];
    --total;
  }
  return widths;
}

std::string Table::render(const Page& page) const {
  const std::vector<std::size_t> natural = natural_widths();
  const std::vector<std::size_t> shown = shown_columns(natural, page.width);
  const std::vector<std::size_t> column_widths = widths(shown, natural, page.width);
  std::string out;
  const auto add_line = [&](const auto& cell_at) {
    for (const std::size_t i : shown) {
      if (i != shown.front()) out.append(kGap, ' ');
      out += draw(cell_at(i), columns_[i].fit, column_widths[i], page.paint);
    }
    end_line(out);
  };
  add_line([&](std::size_t i) { return Cell{{columns_[i].title, Style::kDim}}; });
  for (const std::vector<Cell>& row : rows_) add_line([&](std::size_t i) { return row[i]; });
  return out;
}

}  // namespace plimsoll::cli
