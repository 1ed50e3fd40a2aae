// Any bytes are a profile, up to where they stop making sense, or an error.
#include "formats/fuzzing.h"
#include "formats/memray/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return plimsoll::formats::testing::read_anything(plimsoll::formats::memray::read, data, size);
}
