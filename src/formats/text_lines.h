// formats/text_lines.h: cutting text files into lines and numbers.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace plimsoll::formats {

// The first line, without its end, which may be that of Windows; `text` is moved behind it.
inline std::string_view take_line(std::string_view& text) {
  std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// The number that the digits are; none if there is anything else, or too many of them.
inline std::optional<std::int64_t> integer(std::string_view digits, int base = 10) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// Whether it is "something:12", as places in files are written.
inline bool ends_with_line(std::string_view place) {
  const std::size_t colon = place.rfind(':');
  return colon != std::string_view::npos && integer(place.substr(colon + 1)).has_value();
}

}  // namespace plimsoll::formats
