// Any text is a profile or an error, also where it looks like Austin's.
#include "formats/collapsed/reader.h"
#include "formats/fuzzing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return plimsoll::formats::testing::read_anything(plimsoll::formats::collapsed::read, data, size);
}
