// formats/pyinstrument/reader.h: a session of pyinstrument (.pyisession, JSON) -> a Profile.
//
// pyinstrument measures: each of its records has the seconds that passed. It is wall-clock time of one thread, and
// whether the thread ran or waited is not told, but for "[await]". Methods are named with their class.
#pragma once

#include <string_view>

#include "base/result.h"
#include "profile/profile.h"

namespace plimsoll::formats::pyinstrument {

bool is_pyinstrument(std::string_view bytes);

// kBadInput for what is no whole JSON, or has no records.
Result<profile::Profile> read(std::string_view bytes);

}  // namespace plimsoll::formats::pyinstrument
