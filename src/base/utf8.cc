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

std::size_t put_utf8(std::span<char, kMostUtf8> out, std::uint32_t code_point) noexcept {
  std::size_t size = 0;
  const auto put = [&](std::uint32_t byte) { out[size++] = static_cast<char>(byte); };
  if ((code_point >= 0xd800U && code_point <= 0xdfffU) || code_point > 0x10ffffU) code_point = 0xfffdU;
  if (code_point < 0x80U) {
    put(code_point);
  } else if (code_point < 0x800U) {
    put(0xc0U | (code_point >> 6U));
    put(0x80U | (code_point & 0x3fU));
  } else if (code_point < 0x10000U) {
    put(0xe0U | (code_point >> 12U));
    put(0x80U | ((code_point >> 6U) & 0x3fU));
    put(0x80U | (code_point & 0x3fU));
  } else {
    put(0xf0U | (code_point >> 18U));
    put(0x80U | ((code_point >> 12U) & 0x3fU));
    put(0x80U | ((code_point >> 6U) & 0x3fU));
    put(0x80U | (code_point & 0x3fU));
  }
  return size;
}

void append_utf8(std::string& out, std::uint32_t code_point) {
  char bytes[kMostUtf8];
  out.append(bytes, put_utf8(bytes, code_point));
}

}  // namespace plimsoll
