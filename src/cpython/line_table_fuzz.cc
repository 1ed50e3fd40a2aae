// Every table gives some line for every position, and no read outside the table (ASan watches).
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "cpython/line_table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll::cpython;
  if (size < 2) return 0;
  const auto style = static_cast<LineTableStyle>(data[0] % 3);
  const std::int32_t first_line = data[1] * 1000 - 1000;
  // A copy of exactly the table's size, so that one byte too far is seen.
  const auto table = std::make_unique<char[]>(size - 2);
  for (std::size_t i = 2; i < size; ++i) table[i - 2] = static_cast<char>(data[i]);
  for (const std::int32_t position : {INT32_MIN, -2, 0, 2, 100, 1 << 20, INT32_MAX})
    (void)locate(style, {table.get(), size - 2}, first_line, position);
  return 0;
}
