// formats/pprof/writer.h: a Profile as pprof's profile.proto, gzipped.
//
// Two values per sample, samples/count and cpu/nanoseconds; cpu is the default. Samples are summed per stack and
// thread; times of day within the recording, counters and markers have no place in the format. Labels, all texts, so
// that -tagfocus and -tagroot take them as they are: thread_name, thread_id (the kernel's), pid. Facts about the
// session and the counts of dropped samples are comments (pprof -comments).
#pragma once

#include <string>

#include "profile/profile.h"

namespace plimsoll::formats::pprof {

// The file's bytes. Plain protobuf, which pprof reads as well, where there is no memory to compress.
std::string write(const profile::Profile& profile);
// Likewise of its sampled allocations, with what Go's heap profiles have: objects and bytes, allocated and in use.
std::string write_heap(const profile::Profile& profile);

}  // namespace plimsoll::formats::pprof
