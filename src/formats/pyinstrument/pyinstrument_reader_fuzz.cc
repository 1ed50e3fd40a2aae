// Any JSON is a profile or an error.
#include "formats/fuzzing.h"
#include "formats/pyinstrument/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return plimsoll::formats::testing::read_anything(plimsoll::formats::pyinstrument::read, data, size);
}
