// Whatever an object in memory says of itself: it is read within its bounds, and its code and names are in order.
#include <cstddef>
#include <cstdint>

#include "native/made_code.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll::native;
  const auto object = read_made_object({reinterpret_cast<const char*>(data), size});
  if (!object) return 0;
  std::uint64_t before = 0;
  for (const auto& [start, end] : object->code) {
    if (start < before || end <= start) __builtin_trap();
    before = end;
  }
  object->names.each([&](std::uint64_t start, const CodeNames::Function& function) {
    if (function.end <= start || function.name.empty()) __builtin_trap();
  });
  return 0;
}
