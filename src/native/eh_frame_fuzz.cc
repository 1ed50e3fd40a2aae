// Every section compiles into some table whose every offset has some rule, and no read outside the section (ASan
// watches).
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "native/eh_frame.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll::native;
  // A copy of exactly the section's size, so that one byte too far is seen.
  std::vector<std::byte> bytes(size);
  if (size != 0) std::memcpy(bytes.data(), data, size);
  constexpr std::uint64_t kAddress = 0x500000;
  constexpr std::uint64_t kCode = 0x400000;
  constexpr std::uint32_t kCodeSize = 0x10000;
  RulePool pool;
  const UnwindTable table = compile_eh_frame({bytes, kAddress, kCode, kCode + kCodeSize}, pool);
  for (std::uint32_t offset = 0; offset <= kCodeSize + 1; offset += 7) {
    if (table.find(offset) >= pool.size()) __builtin_trap();
    if (table.function_of(offset) > offset) __builtin_trap();
  }
  return 0;
}
