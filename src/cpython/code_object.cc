#include "cpython/code_object.h"

namespace plimsoll::cpython {

void append_with_surrogates(std::string& out, std::uint32_t code_point) {
  if (code_point < 0xd800U || code_point > 0xdfffU) return append_utf8(out, code_point);
  for (const std::uint32_t byte : {0xedU, 0x80U | ((code_point >> 6U) & 0x3fU), 0x80U | (code_point & 0x3fU)})
    out += static_cast<char>(byte);
}

}  // namespace plimsoll::cpython
