// formats/firefox/writer.h: a Profile as a "processed profile" of the Firefox Profiler (JSON, version 66).
//
// The weight of a sample is its measured CPU time in milliseconds (weightType "tracing-ms"), so the call tree, the
// flame graph and the times per source line show CPU time, not counts. The same time is the sample's threadCPUDelta,
// from which the viewer draws the load over time. Sample times are rounded to a microsecond, without drift.
// Python functions are "JavaScript" to the viewer, which then offers to show them with or without native frames.
// Sources travel inside the file. Counters become tracks, markers keep their fields, and the facts of the session with
// the counts of dropped samples are under "More info".
//
// Version 66 is the newest one that a viewer of 2026 reads for certain: viewers upgrade old files and refuse newer
// ones.
#pragma once

#include <string>

#include "base/result.h"
#include "profile/profile.h"

namespace plimsoll::formats::firefox {

// The file's bytes, not compressed. The viewer reads gzipped files as well.
std::string write(const profile::Profile& profile);

// The same as a JSLB container (jslb.h), version 67, the first one with times as columns. kUnsupported above 4 GiB.
Result<std::string> write_jslb(const profile::Profile& profile);

}  // namespace plimsoll::formats::firefox
