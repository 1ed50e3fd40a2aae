// debuginfo/add_lines.h: gives a profile's native frames their source lines, and frames for functions that were
// inlined.
#pragma once

#include <string>
#include <vector>

#include "debuginfo/line_resolver.h"
#include "profile/profile.h"

namespace plimsoll::debuginfo {

// What came of it.
struct LinesReport {
  std::size_t frames = 0;             // native frames whose address is known
  std::size_t resolved = 0;           // of them, those that debug information says something of
  bool is_late = false;               // there was no time for more
  std::vector<std::string> problems;  // of files that could not be looked into, in words
};

// Of each native frame with an address: its line, and after it the functions that were inlined there, as frames of
// their own (Frame::inline_depth). Files are opened where the profile says they were, and believed by their build-ids;
// if there were several at one place, none is. What there is no debug information for stays as it is.
LinesReport add_lines(profile::Profile& profile, const Limits& limits);

// The same for what a command shows: within some seconds, and only of profiles with native frames.
LinesReport add_lines(profile::Profile& profile);

}  // namespace plimsoll::debuginfo
