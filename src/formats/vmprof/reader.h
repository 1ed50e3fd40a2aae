// formats/vmprof/reader.h: a vmprof profile -> a Profile.
//
// What the format does not tell is not made up, but for two things that a Profile needs:
// - Weights. A sample stands for the period of the file's header, the one that was asked for. Where the samples of one
//   thread would so stand for more time than passed, each stands for its share of that time. Version 7 of vmprof 0.6
//   measures: there a sample stands for the time since the one before. meta "weights" says which it is.
// - Times. Before version 7 samples are spread evenly over the recording. meta "times" says so. In version 7 of vmprof
// 0.6
//   they have the CPU clock's, but for real-time recordings; meta kClockFact is what it showed at the start.
// RSS becomes the counter "rss", statistics of PyPy's garbage collector counters of their names, and sampled
// allocations markers "allocation" with the type of the object, and whether it survived.
#pragma once

#include <string_view>

#include "base/mapped_file.h"
#include "base/result.h"
#include "profile/profile.h"

namespace plimsoll::formats::vmprof {

// In nanoseconds.
inline constexpr std::string_view kClockFact = "vmprof.cpu_clock_ns";

// Whether bytes begin like a vmprof profile, also one that cannot be read (big endian).
bool is_vmprof(std::string_view bytes);

// Reads an unpacked file of any version (0 to 7), word size and system. One that is cut or damaged gives what came
// before, with complete == false. Errors: kBadInput for what is no vmprof profile, kUnsupported for big-endian ones and
// for versions that are not known.
Result<profile::Profile> read(std::string_view bytes);
// The same, in memory that does not grow with the file but for the samples.
Result<profile::Profile> read_file(const MappedFile& file);

}  // namespace plimsoll::formats::vmprof
