// formats/speedscope/reader.h: speedscope's JSON -> a Profile, a thread for each of its profiles.
//
// Numbers without a unit are samples: each counts as a millisecond, and meta "weights" says so. Profiles of bytes are
// left out.
#pragma once

#include <string_view>

#include "base/result.h"
#include "profile/profile.h"

namespace plimsoll::formats::speedscope {

bool is_speedscope(std::string_view bytes);
Result<profile::Profile> read(std::string_view bytes);

}  // namespace plimsoll::formats::speedscope
