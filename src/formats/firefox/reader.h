// formats/firefox/reader.h: the Firefox Profiler's processed JSON, or the same in a JSLB container -> a Profile.
//
// From version 47 (tables in each thread) to 70 (shared tables). A sample weighs what the file says if it tells weights
// in milliseconds, else the thread's CPU time since the sample before, else the interval; meta "weights" says which.
#pragma once

#include <string_view>

#include "base/result.h"
#include "profile/profile.h"

namespace plimsoll::formats::firefox {

bool is_firefox(std::string_view bytes);
Result<profile::Profile> read(std::string_view bytes);

}  // namespace plimsoll::formats::firefox
