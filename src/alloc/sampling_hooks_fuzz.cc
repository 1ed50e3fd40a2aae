// alloc/sampling_hooks_fuzz.cc: any sequence of allocations, frees, recordings and other tools' hooks leaves the
// program with its blocks as they were.
#include <cstddef>
#include <cstdint>

#include "alloc/sampling_hooks_testing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  plimsoll::alloc::testing::Program program;
  for (std::size_t i = 0; i + 2 < size && i < 30'000; i += 3) program.step(data[i], data[i + 1], data[i + 2]);
  return 0;
}
