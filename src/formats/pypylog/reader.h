// formats/pypylog/reader.h: the log that PyPy writes where PYPYLOG says: what its collector and its JIT did, and when.
//
// Lines "[ticks in hex] {section" and "[ticks] section}" nest; all others are text. The log does not tell what its
// ticks are: the processor's time stamp counter on x86, nanoseconds elsewhere. A log that `plimsoll run` has made tells
// it: in it stand sections "plimsoll-clock-N", each begun when the time of day was N nanoseconds.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "profile/profile.h"

namespace plimsoll::formats::pypylog {

// Adds the sections of a log to the profile of the same program, as markers of the process by their names. Sections
// without an end, because the program was killed, and those that ended before the profile began are left out. Gives
// false, and adds nothing, if the log has no two clock sections: then its time is not known.
bool add_sections(profile::Profile& profile, std::string_view log);

// What a profile read from a log tells in its meta value "weights".
constexpr std::string_view kMeasuredTicks = "measured";
constexpr std::string_view kEstimatedTicks = "estimated: by the time that the JIT says it took";
constexpr std::string_view kAssumedTicks = "assumed: a tick of the log is a nanosecond";

bool is_pypylog(std::string_view bytes);
// A log by itself: its sections are the stacks, and weigh their time. In a log with text (PYPYLOG=:FILE) the JIT says
// at its end how many seconds it took, which tells how long a tick is, to a few hundredths. Where neither that nor the
// time is told, a tick is taken for a nanosecond.
Result<profile::Profile> read(std::string_view bytes);

}  // namespace plimsoll::formats::pypylog
