// formats/chrometrace/reader.h: traces in Chrome's Trace Event Format (JSON) -> a Profile.
//
// An object with "traceEvents", or an array of events, which the format allows to be cut. Where a trace has samples
// (V8's "Profile" and "ProfileChunk" or "CpuProfile", or events and rows with a stack frame "sf"), they are the
// profile, a sample weighs the time to the next one of its thread, and events that last are markers. Else the events
// that last are taken for calls (viztracer's, for example): their nesting gives the stacks, and these weigh the time
// that passed. Counters ("C") are counters. Other events are left out.
#pragma once

#include <string_view>

#include "base/result.h"
#include "profile/profile.h"

namespace plimsoll::formats::chrometrace {

bool is_chrome_trace(std::string_view bytes);
Result<profile::Profile> read(std::string_view bytes);

}  // namespace plimsoll::formats::chrometrace
