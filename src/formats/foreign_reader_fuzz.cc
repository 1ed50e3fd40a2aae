// Any bytes are a profile or an error, to the reader that recognises them, and to each of the others, too.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/input.h"
#include "profile/flat.h"
#include "profile/tree.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll;
  if (size == 0) return 0;
  // The first byte chooses the reader, so that random changes get past the signatures.
  const std::vector<formats::Reader>& readers = formats::readers();
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  (void)formats::read_profile(bytes);
  const auto profile = readers[data[0] % readers.size()].read(bytes);
  if (!profile.ok()) return 0;
  (void)tree(profile.value(), profile::Granularity::kLine);
  (void)flat(profile.value());
  return 0;
}
