// cli/memory_timeline.h: memory over time: what the process has, what Python's allocators have given out and not got
// back, and who asked for most of it.
#pragma once

#include <string>

#include "cli/terminal.h"
#include "profile/profile.h"

namespace plimsoll::cli {

// One row per moment, the last one at the end.
std::string timeline_text(const profile::Profile& profile, std::size_t moments, const Page& page);
std::string timeline_json(const profile::Profile& profile, std::size_t moments);

}  // namespace plimsoll::cli
