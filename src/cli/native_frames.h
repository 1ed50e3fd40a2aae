// cli/native_frames.h: how much of a profile's native frames a command shows.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/console.h"
#include "profile/profile.h"

namespace plimsoll::cli {

// Which of them.
enum class NativeFrames : std::uint8_t {
  kAll,
  kEntries,  // where a library was entered (profile/without_native.h)
  kNone,
};

// Changes the stacks to that. Those that stay get their lines, and the functions that were inlined into them
// (debuginfo/add_lines.h); what could not be done is said on the console.
void choose_native_frames(profile::Profile& profile, NativeFrames which, Console& console);

// A recording of ours, with all native frames and their lines.
Result<profile::Profile> read_with_lines(const std::string& plim, Console& console);

}  // namespace plimsoll::cli
