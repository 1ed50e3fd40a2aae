#include "cpython/literals.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

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

// As repr has it: a backslash, u and four digits.
void append_surrogate(std::string& out, std::string_view three_bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto six_bits = [&](std::size_t i) { return static_cast<unsigned char>(three_bytes[i]) & 0x3fU; };
  const unsigned number = 0xd000U | (six_bits(1) << 6U) | six_bits(2);
  out += "\\u";
  for (unsigned shift = 16; shift > 0; shift -= 4) out += kDigits[(number >> (shift - 4)) & 15U];
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
      append_surrogate(out, utf8.substr(i, 3));
      i += 2;
    } else if (byte == kLead && next >= 0x80 && next < 0xa0) {
      append_escaped(out, next);
      ++i;
    } else if (is_control(byte)) {
      append_escaped(out, byte);
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
