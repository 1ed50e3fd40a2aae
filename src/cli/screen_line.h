// cli/screen_line.h: a line of a screen, built from the left in columns that stand where they stand.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cli/table.h"

namespace plimsoll::cli {

// The cells of a screen.
struct ScreenSize {
  std::size_t columns = 80, rows = 24;
  bool operator==(const ScreenSize&) const = default;
};

// Texts are made printable here, wherever they come from, and no line grows beyond its width.
class ScreenLine {
 public:
  explicit ScreenLine(std::size_t width) : width_(width) {}

  // Text as it is, as far as there is room.
  ScreenLine& add(std::string_view text, Style style = Style::kPlain);
  // A column of `cells` cells: aligned right, for numbers; or left, cut at its end (names) or its start (paths).
  ScreenLine& right(std::string_view text, std::size_t cells, Style style = Style::kPlain);
  ScreenLine& left(std::string_view text, std::size_t cells, Style style = Style::kPlain);
  ScreenLine& path(std::string_view text, std::size_t cells, Style style = Style::kPlain);

  [[nodiscard]] std::size_t room() const { return width_ - used_; }
  [[nodiscard]] Cell take() { return std::move(spans_); }

 private:
  ScreenLine& put(std::string text, Style style);

  std::size_t width_;
  std::size_t used_ = 0;
  Cell spans_;
};

// A line without its styles, and without blanks at its end.
std::string plain(const Cell& line);

}  // namespace plimsoll::cli
