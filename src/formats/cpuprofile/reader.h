// formats/cpuprofile/reader.h: V8's .cpuprofile, as Chrome's developer tools and Node write it -> a Profile.
#pragma once

#include <string_view>

#include "base/result.h"
#include "profile/profile.h"

namespace plimsoll::formats::cpuprofile {

bool is_cpuprofile(std::string_view bytes);
Result<profile::Profile> read(std::string_view bytes);

}  // namespace plimsoll::formats::cpuprofile
