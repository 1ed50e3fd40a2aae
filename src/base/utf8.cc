#include "base/utf8.h"

#include <array>

namespace plimsoll {

Utf8Character first_character(std::string_view text) {
  constexpr Utf8Character kInvalidByte{Utf8Character::kInvalid, 1};
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return {byte(0), 1};
  const std::size_t size = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || size > text.size()) return kInvalidByte;
  char32_t point = byte(0) & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return kInvalidByte;
    point = (point << 6U) | (byte(i) & 0x3fU);
  }
  constexpr std::array<char32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = point >= 0xd800 && point <= 0xdfff;
  if (point < kSmallest[size] || point > 0x10ffff || is_surrogate) return kInvalidByte;
  return {point, size};
}

}  // namespace plimsoll
