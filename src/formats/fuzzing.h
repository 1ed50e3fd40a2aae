// formats/fuzzing.h: what every fuzzer of a reader does, for fuzzers only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "profile/flat.h"
#include "profile/tree.h"

namespace plimsoll::formats::testing {

// Any bytes are an error or a profile, and a profile can be used.
inline int read_anything(Result<profile::Profile> (*read)(std::string_view), const std::uint8_t* data,
                         std::size_t size) {
  const Result<profile::Profile> profile = read({reinterpret_cast<const char*>(data), size});
  if (!profile.ok()) return 0;
  (void)tree(profile.value(), profile::Granularity::kLine);
  (void)flat(profile.value());
  return 0;
}

}  // namespace plimsoll::formats::testing
