// cli/utf8.cc: decoding, cleaning and measuring of UTF-8.
#include "cli/utf8.h"

#include <algorithm>
#include <array>

namespace plimsoll::cli {
namespace {

constexpr char32_t kInvalid = 0xffffffffU;
constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

// One decoded character and the bytes that it takes; an invalid byte counts as one character of one byte.
struct Decoded {
  char32_t point;
  std::size_t size;
};

Decoded decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return {byte(0), 1};
  const std::size_t size = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || size > text.size()) return {kInvalid, 1};
  char32_t point = byte(0) & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return {kInvalid, 1};
    point = (point << 6U) | (byte(i) & 0x3fU);
  }
  constexpr std::array<char32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = point >= 0xd800 && point <= 0xdfff;
  if (point < kSmallest[size] || point > 0x10ffff || surrogate) return {kInvalid, 1};
  return {point, size};
}

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
    const Decoded next = decode(text);
    const bool control = next.point < 0x20 || next.point == 0x7f;
    const bool unsafe = (next.point >= 0x80 && next.point < 0xa0) || within(kDirection, next.point);
    if (next.point == '\t') {
      out += ' ';
    } else if (control) {
      append_control_picture(out, next.point);
    } else {
      out += next.point == kInvalid || unsafe ? kReplacement : text.substr(0, next.size);
    }
    text.remove_prefix(next.size);
  }
  return out;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Decoded next = decode(text);
    width += cells(next.point);
    text.remove_prefix(next.size);
  }
  return width;
}

std::string_view start_of(std::string_view text, std::size_t width) {
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const Decoded next = decode(text.substr(bytes));
    if (cells(next.point) > width) break;
    width -= cells(next.point);
    bytes += next.size;
  }
  return text.substr(0, bytes);
}

std::string_view end_of(std::string_view text, std::size_t width) {
  std::size_t surplus = display_width(text);
  while (surplus > width) {
    const Decoded next = decode(text);
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
