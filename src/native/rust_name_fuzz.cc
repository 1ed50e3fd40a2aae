// Names as no compiler writes them: what comes of each is short, and comes soon.
#include <cstddef>
#include <cstdint>

#include "native/rust_name.h"
#include "native/rust_v0_name.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll::native;
  const auto name = rust_name({reinterpret_cast<const char*>(data), size});
  if (name && (name->empty() || name->size() > kMostRustName)) __builtin_trap();
  return 0;
}
