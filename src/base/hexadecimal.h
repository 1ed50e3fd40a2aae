// base/hexadecimal.h: addresses as text, "0x7f3a10".
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plimsoll {

inline std::string hexadecimal(std::uint64_t number) {
  std::array<char, 2 * sizeof number> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return "0x" + std::string(digits.data(), end);
}

// The number of such a text; none for any other, or one above 64 bits.
inline std::optional<std::uint64_t> from_hexadecimal(std::string_view text) {
  if (!text.starts_with("0x")) return std::nullopt;
  text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace plimsoll
