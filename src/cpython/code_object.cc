#include "cpython/code_object.h"

namespace plimsoll::cpython {

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

void append_with_surrogates(std::string& out, std::uint32_t code_point) {
  if (code_point < 0xd800U || code_point > 0xdfffU) return append_utf8(out, code_point);
  for (const std::uint32_t byte : {0xedU, 0x80U | ((code_point >> 6U) & 0x3fU), 0x80U | (code_point & 0x3fU)})
    out += static_cast<char>(byte);
}

}  // namespace plimsoll::cpython
