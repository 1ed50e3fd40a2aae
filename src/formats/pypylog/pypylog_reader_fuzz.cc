// Any text is a log's sections or an error.
#include "formats/fuzzing.h"
#include "formats/pypylog/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  plimsoll::profile::Profile profile;
  (void)plimsoll::formats::pypylog::add_sections(profile, {reinterpret_cast<const char*>(data), size});
  return plimsoll::formats::testing::read_anything(plimsoll::formats::pypylog::read, data, size);
}
