// Names as no compiler writes them: what comes of each is short, and comes soon.
#include <cstddef>
#include <cstdint>

#include "native/rust_name.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto name = plimsoll::native::rust_name({reinterpret_cast<const char*>(data), size});
  if (name && (name->empty() || name->size() > 4096)) __builtin_trap();
  return 0;
}
