// Whatever _Py_DebugOffsets says, the result is a Layout whose offsets lie inside their structures, or an error.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cpython/layout.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll::cpython;
  unsigned char bytes[kDebugOffsetsSize] = {};
  std::memcpy(bytes, data, std::min(size, sizeof bytes));
  // The cookie and a version are given, so that the fuzzer need not find them.
  std::memcpy(bytes, "xdebugpy", 8);
  const std::uint64_t version = 0x030D0000U + (size % 3) * 0x10000U;
  std::memcpy(bytes + 8, &version, sizeof version);
  bytes[16] &= 1U;
  std::memset(bytes + 17, 0, 7);
  const auto layout = layout_from_debug_offsets(bytes, sizeof bytes);
  constexpr std::uint32_t kLargest = 1U << 20U;
  if (layout.ok() && (layout.value().frame.previous > kLargest || layout.value().code.bytecode > kLargest ||
                      layout.value().unicode.ascii_size > kLargest || layout.value().tstate.current_frame > kLargest))
    __builtin_trap();
  return 0;
}
