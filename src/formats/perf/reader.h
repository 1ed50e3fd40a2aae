// formats/perf/reader.h: the text that `perf script` prints -> a Profile.
//
// A sample is a line "comm pid/tid [cpu] seconds: period event:", then its frames, the innermost first: "address
// symbol+offset (file)"; an empty line ends it. Of several events one is taken: cpu-clock or task-clock, whose periods
// are nanoseconds, else cycles. A cycle takes the time between samples over their periods where that is least, at
// most a nanosecond, and where no times are told a sample is a millisecond; meta "weights" says which. What CPython's
// perf support names "py::function:file" is Python.
#pragma once

#include <string_view>

#include "base/result.h"
#include "profile/profile.h"

namespace plimsoll::formats::perf {

// Whether the first lines that are neither empty nor comments ("# ...") are those of a sample.
bool is_perf_script(std::string_view bytes);

// Lines that make no sense are left out and counted as drops. kBadInput if there is no sample at all, kUnsupported if
// there are samples of other events only.
Result<profile::Profile> read(std::string_view bytes);

}  // namespace plimsoll::formats::perf
