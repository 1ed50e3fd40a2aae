#include "cpython/literals.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include "base/utf8.h"

namespace plimsoll::cpython {
namespace {

std::string written(double number, std::chars_format format) {
  std::array<char, 400> room;
  return {room.data(), std::to_chars(room.data(), room.data() + room.size(), number, format).ptr};
}

// With as few digits as tell it from all others; as repr, with an exponent only where that is below -4 or above 15.
std::string shortest(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  constexpr int kLowest = -4, kHighest = 15;
  const std::string with_exponent = written(number, std::chars_format::scientific);
  int exponent = 0;
  const char* at = with_exponent.data() + with_exponent.find('e') + 1;
  std::from_chars(*at == '+' ? at + 1 : at, with_exponent.data() + with_exponent.size(), exponent);
  return exponent < kLowest || exponent > kHighest ? with_exponent : written(number, std::chars_format::fixed);
}

void append_escaped(std::string& out, unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  switch (byte) {
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  out += "\\x";
  out += kDigits[byte >> 4U];
  out += kDigits[byte & 15U];
}

// As repr has it: a backslash, and x and two digits, u and four, or U and eight.
void append_escaped_point(std::string& out, char32_t point) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += point < 0x100 ? "\\x" : point < 0x10000 ? "\\u" : "\\U";
  for (unsigned shift = point < 0x100 ? 8 : point < 0x10000 ? 16 : 32; shift > 0; shift -= 4)
    out += kDigits[(point >> (shift - 4)) & 15U];
}

char32_t surrogate(std::string_view three_bytes) {
  const auto six_bits = [&](std::size_t i) { return static_cast<unsigned char>(three_bytes[i]) & 0x3fU; };
  return 0xd000U | (six_bits(1) << 6U) | six_bits(2);
}

struct Range {
  char32_t first, last;
};
// Characters that nobody sees, or that look like a space: Unicode's categories Zs, Zl, Zp, Cf and Co. (What is not
// assigned differs between versions of Python.)
constexpr std::array<Range, 25> kInvisible = {
    {{0xa0, 0xa0},       {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},     {0x6dd, 0x6dd},
     {0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},     {0x1680, 0x1680},   {0x180e, 0x180e},
     {0x2000, 0x200f},   {0x2028, 0x202f},   {0x205f, 0x206f},   {0x3000, 0x3000},   {0xe000, 0xf8ff},
     {0xfeff, 0xfeff},   {0xfff9, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f},
     {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0001, 0xe0001}, {0xe0020, 0xe007f}, {0xf0000, 0x10ffff}}};

bool is_invisible(char32_t point) {
  return std::any_of(kInvisible.begin(), kInvisible.end(),
                     [&](const Range& range) { return point >= range.first && point <= range.last; });
}

char quote_for(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  return has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
}

bool is_control(unsigned char byte) { return byte < 0x20 || byte == 0x7f; }

}  // namespace

std::string float_literal(double number) {
  std::string text = shortest(number);
  if (std::isfinite(number) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string complex_literal(double real, double imaginary) {
  std::string second = shortest(imaginary) + "j";
  if (real == 0 && !std::signbit(real)) return second;
  if (second[0] != '-') second.insert(0, "+");
  return "(" + shortest(real) + second + ")";
}

std::string int_literal(std::span<const std::uint32_t> digits, bool is_negative) {
  constexpr std::uint32_t kBillion = 1'000'000'000;
  constexpr unsigned kBits = 30, kPlaces = 9;
  std::vector<std::uint32_t> decimal;  // nine places each, the lowest first
  for (std::size_t i = digits.size(); i-- > 0;) {
    std::uint64_t carry = digits[i];
    for (std::uint32_t& part : decimal) {
      carry += std::uint64_t{part} << kBits;
      part = static_cast<std::uint32_t>(carry % kBillion);
      carry /= kBillion;
    }
    for (; carry > 0; carry /= kBillion) decimal.push_back(static_cast<std::uint32_t>(carry % kBillion));
  }
  if (decimal.empty()) return "0";
  std::string text = (is_negative ? "-" : "") + std::to_string(decimal.back());
  for (std::size_t i = decimal.size() - 1; i-- > 0;) {
    const std::string part = std::to_string(decimal[i]);
    text.append(kPlaces - part.size(), '0') += part;
  }
  return text;
}

std::string text_literal(std::string_view utf8) {
  const char quote = quote_for(utf8);
  std::string out(1, quote);
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    const auto byte = static_cast<unsigned char>(utf8[i]);
    const auto next = static_cast<unsigned char>(i + 1 < utf8.size() ? utf8[i + 1] : 0);
    constexpr unsigned char kLead = 0xc2;           // of U+0080 to U+00BF; those below U+00A0 are control characters
    constexpr unsigned char kSurrogateLead = 0xed;  // and then 0xa0 or more
    if (byte == kSurrogateLead && next >= 0xa0 && i + 2 < utf8.size()) {
      append_escaped_point(out, surrogate(utf8.substr(i, 3)));
      i += 2;
    } else if (byte == kLead && next >= 0x80 && next < 0xa0) {
      append_escaped(out, next);
      ++i;
    } else if (is_control(byte)) {
      append_escaped(out, byte);
    } else if (const Utf8Character whole = first_character(utf8.substr(i));
               byte >= kLead && is_invisible(whole.point)) {
      append_escaped_point(out, whole.point);
      i += whole.size - 1;
    } else {
      if (utf8[i] == quote || utf8[i] == '\\') out += '\\';
      out += utf8[i];
    }
  }
  return out + quote;
}

std::string bytes_literal(std::string_view bytes) {
  const char quote = quote_for(bytes);
  std::string out = std::string("b") + quote;
  for (const char letter : bytes) {
    const auto byte = static_cast<unsigned char>(letter);
    if (is_control(byte) || byte > 0x7f) {
      append_escaped(out, byte);
    } else {
      if (letter == quote || letter == '\\') out += '\\';
      out += letter;
    }
  }
  return out + quote;
}

}  // namespace plimsoll::cpython
