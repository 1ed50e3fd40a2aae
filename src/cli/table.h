// cli/table.h: columns of text.
//
// Every column is as wide as its widest cell. When the row does not fit the page, the columns that may be cut give way,
// the widest first and paths before names; and before a name is cut so much that it says little, columns that can be
// spared are left out.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/terminal.h"

namespace plimsoll::cli {

// A piece of a cell.
struct Span {
  std::string text;  // printable
  Style style = Style::kPlain;
};
using Cell = std::vector<Span>;

// How a column is aligned, and which end it gives up when the page is narrow.
enum class Fit {
  kRight,     // aligned right, never cut: numbers
  kLeft,      // aligned left, never cut
  kCutRight,  // names: the start matters
  kCutLeft,   // paths: the end matters
};

// A column's head, and what happens to it on a narrow page.
struct Column {
  std::string title;
  Fit fit = Fit::kRight;
  int spare = 0;  // on a page that is too narrow, those with the largest number are left out first; 0: never
};

// Rows of cells, laid out when they are printed.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // One cell per column.
  void add_row(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  // A title line and a line per row, none wider than the page as long as the columns that are never cut fit on it.
  [[nodiscard]] std::string render(const Page& page) const;

 private:
  [[nodiscard]] std::vector<std::size_t> natural_widths() const;
  [[nodiscard]] std::vector<std::size_t> shown_columns(const std::vector<std::size_t>& natural,
                                                       std::size_t page_width) const;
  [[nodiscard]] std::vector<std::size_t> widths(const std::vector<std::size_t>& shown,
                                                const std::vector<std::size_t>& natural, std::size_t page_width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace plimsoll::cli
