// base/utf8.h: one character of UTF-8 that may be invalid.
#pragma once

#include <cstddef>
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

}  // namespace plimsoll
