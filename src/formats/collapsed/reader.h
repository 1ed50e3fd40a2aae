// formats/collapsed/reader.h: collapsed ("folded") stacks -> a Profile.
//
// A line is frames joined by ";", a blank, and a number. Frames are "function (file:line)" as Plimsoll and py-spy write
// them, or anything else, which is then a name. The number is taken for microseconds, which it is in Plimsoll's files;
// in others it may be a number of samples, so meta "weights" tells what was assumed. Lines of Austin begin with process
// and thread ("P12;T34;"), have frames "file:function:line", and microseconds, or in its full
// mode microseconds, idle or not, and a change of memory; its comments have the facts of the session.
#pragma once

#include <string_view>

#include "base/result.h"
#include "profile/profile.h"

namespace plimsoll::formats::collapsed {

// Whether the first line that is neither empty nor a comment ("# ...") is one of a stack.
bool is_collapsed(std::string_view bytes);

// Lines that are none are left out and counted as drops. kBadInput if there is no stack at all, kUnsupported if Austin
// has recorded memory only.
Result<profile::Profile> read(std::string_view bytes);

}  // namespace plimsoll::formats::collapsed
