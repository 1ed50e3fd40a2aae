#include "cli/screen_line.h"

#include <algorithm>

#include "cli/utf8.h"

namespace plimsoll::cli {
namespace {

// A name may be a megabyte of marks that take no cell.
constexpr std::size_t kMostBytes = 2000;

std::string short_and_printable(std::string_view text) { return printable(text.substr(0, kMostBytes)); }

std::string blanks(std::string_view before, std::size_t cells) {
  return std::string(cells - std::min(display_width(before), cells), ' ');
}

}  // namespace

ScreenLine& ScreenLine::put(std::string text, Style style) {
  used_ += display_width(text);
  if (!text.empty()) spans_.push_back({std::move(text), style});
  return *this;
}

ScreenLine& ScreenLine::add(std::string_view text, Style style) {
  return put(cut_right(short_and_printable(text), room()), style);
}

ScreenLine& ScreenLine::right(std::string_view text, std::size_t cells, Style style) {
  cells = std::min(cells, room());
  std::string cut = cut_right(short_and_printable(text), cells);
  return put(blanks(cut, cells) + cut, style);
}

ScreenLine& ScreenLine::left(std::string_view text, std::size_t cells, Style style) {
  cells = std::min(cells, room());
  std::string cut = cut_right(short_and_printable(text), cells);
  return put(cut + blanks(cut, cells), style);
}

ScreenLine& ScreenLine::path(std::string_view text, std::size_t cells, Style style) {
  cells = std::min(cells, room());
  std::string cut = cut_left(printable(text.substr(text.size() - std::min(text.size(), kMostBytes))), cells);
  return put(cut + blanks(cut, cells), style);
}

std::string plain(const Cell& line) {
  std::string out;
  for (const Span& span : line) out += span.text;
  out.erase(out.find_last_not_of(' ') + 1);
  return out;
}

}  // namespace plimsoll::cli
