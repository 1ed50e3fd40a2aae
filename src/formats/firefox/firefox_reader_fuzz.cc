// Any JSON and any container of slabs are a profile or an error.
#include "formats/firefox/reader.h"
#include "formats/fuzzing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return plimsoll::formats::testing::read_anything(plimsoll::formats::firefox::read, data, size);
}
