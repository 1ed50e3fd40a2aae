// Any text is a profile or an error, whole or cut.
#include "formats/chrometrace/reader.h"
#include "formats/fuzzing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return plimsoll::formats::testing::read_anything(plimsoll::formats::chrometrace::read, data, size);
}
