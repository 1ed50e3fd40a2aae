// Any bytes are either a profile, up to where they stop making sense, or an error; and a profile can be used.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/vmprof/reader.h"
#include "profile/flat.h"
#include "profile/tree.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll;
  const auto profile = formats::vmprof::read({reinterpret_cast<const char*>(data), size});
  if (!profile.ok()) return 0;
  (void)tree(profile.value(), profile::Granularity::kLine);
  (void)flat(profile.value());
  (void)lines(profile.value());
  return 0;
}
