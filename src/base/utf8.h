// base/utf8.h: single characters from and to UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace plimsoll {

// One decoded character and the bytes that it takes; an invalid byte counts as one character of one byte.
struct Utf8Character {
  static constexpr char32_t kInvalid = 0xffffffffU;
  char32_t point;
  std::size_t size;
  [[nodiscard]] bool is_valid() const { return point != kInvalid; }
};

// What stands for an invalid byte: U+FFFD.
inline constexpr std::string_view kUtf8Replacement = "\xef\xbf\xbd";

// The character that a text starts with. The text must not be empty.
Utf8Character first_character(std::string_view text);

// The most bytes that one code point takes in UTF-8.
inline constexpr std::size_t kMostUtf8 = 4;
// UTF-8 of one code point; a lone surrogate (a file name that is not UTF-8) becomes U+FFFD. How many bytes that is.
// Async-signal-safe.
std::size_t put_utf8(std::span<char, kMostUtf8> out, std::uint32_t code_point) noexcept;
void append_utf8(std::string& out, std::uint32_t code_point);

}  // namespace plimsoll
