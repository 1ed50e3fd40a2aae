// formats/firefox/bundle.h: a profile for the Firefox Profiler on another machine, in one file.
//
// A zip archive with profile.json (which the page opens, also within the archive), the texts of the profiled files in
// sources/, what is attached to the profile in attached/, and README.txt, which says what to do.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "profile/profile.h"

namespace plimsoll::formats::firefox {

// The archive's bytes. `name` is what the profile is called in the README. Waits and tags of the profile are put where
// the page shows them, as in write_as.
Result<std::string> write_bundle(profile::Profile& profile, std::string_view name);

}  // namespace plimsoll::formats::firefox
