// formats/speedscope/writer.h: a Profile as a speedscope file (JSON,
// https://www.speedscope.app/file-format-schema.json).
//
// One "sampled" profile per thread that has samples, weights in nanoseconds of measured CPU time. A speedscope frame is
// known by its index, so one frame is made per function, at the line of its definition: were lines of execution frames
// of their own, the sandwich view would show a function once for each of its lines. Adjacent samples of a thread with
// the same functions on the stack are one sample of the summed weight; the views draw them the same.
// The format has no place for times of day, counters, markers, or lines within functions.
#pragma once

#include <string>

#include "profile/profile.h"

namespace plimsoll::formats::speedscope {

// The file's bytes.
std::string write(const profile::Profile& profile);

}  // namespace plimsoll::formats::speedscope
