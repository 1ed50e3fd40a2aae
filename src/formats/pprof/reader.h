// formats/pprof/reader.h: profile.proto -> a Profile.
//
// Of several kinds of values the one of time is taken: wall, then cpu, then any other in a unit of time. Samples have
// no times in this format: they are put one after the other, thread by thread (labels thread_name, thread_id, pid).
#pragma once

#include <string_view>

#include "base/result.h"
#include "profile/profile.h"

namespace plimsoll::formats::pprof {

// Whether unpacked bytes look like it: the first field is a value type, a sample, or another message of the format.
bool is_pprof(std::string_view bytes);

// Whether unpacked bytes, which are no whole file, are the beginning of one.
bool ends_early(std::string_view bytes);
inline constexpr std::string_view kEndsEarly =
    "a pprof file that ends early: most of its names come last, and without them nothing can be told of it; copy or "
    "write it anew";

// kBadInput where the bytes break the wire format; kUnsupported if no value is one of time.
Result<profile::Profile> read(std::string_view bytes);

}  // namespace plimsoll::formats::pprof
