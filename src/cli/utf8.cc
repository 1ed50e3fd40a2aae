// cli/utf8.cc: decoding, cleaning and measuring of UTF-8.
#include "cli/utf8.h"

#include <algorithm>
#include <array>

#include "base/utf8.h"

namespace plimsoll::cli {
namespace {

struct Range {
  char32_t first, last;
};

template <std::size_t N>
bool within(const std::array<Range, N>& ranges, char32_t point) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const Range& range) { return point >= range.first && point <= range.last; });
}

// The blocks that matter in identifiers and comments; a full table of Unicode would not change a report that is read.
constexpr std::array<Range, 7> kCombining = {{{0x300, 0x36f},
                                              {0x483, 0x489},
                                              {0x591, 0x5bd},
                                              {0x610, 0x61a},
                                              {0x64b, 0x65f},
                                              {0x200b, 0x200f},
                                              {0xfe00, 0xfe0f}}};
constexpr std::array<Range, 9> kWide = {{{0x1100, 0x115f},
                                         {0x2e80, 0x303e},
                                         {0x3041, 0xa4cf},
                                         {0xac00, 0xd7a3},
                                         {0xf900, 0xfaff},
                                         {0xfe30, 0xfe6f},
                                         {0xff00, 0xff60},
                                         {0x1f300, 0x1faff},
                                         {0x20000, 0x3fffd}}};
// Marks, embeddings, overrides and isolates of writing direction.
constexpr std::array<Range, 4> kDirection = {{{0x200e, 0x200f}, {0x202a, 0x202e}, {0x2066, 0x2069}, {0x61c, 0x61c}}};

std::size_t cells(char32_t point) {
  if (point < 0x300) return 1;
  if (within(kCombining, point)) return 0;
  return within(kWide, point) ? 2 : 1;
}

void append_control_picture(std::string& out, char32_t control) {
  out += "\xe2\x90";  // U+2400 + control
  out += static_cast<char>(0x80U + (control == 0x7f ? 0x21U : control));
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character next = first_character(text);
    const bool control = next.point < 0x20 || next.point == 0x7f;
    const bool unsafe = (next.point >= 0x80 && next.point < 0xa0) || within(kDirection, next.point);
    if (next.point == '\t') {
      out += ' ';
    } else if (control) {
      append_control_picture(out, next.point);
    } else {
      out += !next.is_valid() || unsafe ? kUtf8Replacement : text.substr(0, next.size);
    }
    text.remove_prefix(next.size);
  }
  return out;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Utf8Character next = first_character(text);
    width += cells(next.point);
    text.remove_prefix(next.size);
  }
  return width;
}

std::string_view start_of(std::string_view text, std::size_t width) {
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const Utf8Character next = first_character(text.substr(bytes));
    if (cells(next.point) > width) break;
    width -= cells(next.point);
    bytes += next.size;
  }
  return text.substr(0, bytes);
}

std::string_view end_of(std::string_view text, std::size_t width) {
  std::size_t surplus = display_width(text);
  while (surplus > width) {
    const Utf8Character next = first_character(text);
    surplus -= cells(next.point);
    text.remove_prefix(next.size);
  }
  return text;
}

std::string cut_right(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return {};
  return std::string(start_of(text, width - 1)) + "…";
}

std::string cut_left(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return {};
  return "…" + std::string(end_of(text, width - 1));
}

}  // namespace plimsoll::cli
