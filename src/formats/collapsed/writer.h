// formats/collapsed/writer.h: a Profile as collapsed ("folded") stacks, the input of flamegraph.pl, inferno and others.
//
// One line per thread and stack: the frames, outermost call first, joined by ";", a blank, and a weight:
//
//   handle (app.py:10);parse (json/decoder.py:355) 1250
//
// The weight is measured CPU time in MICROSECONDS. Rounding errors are carried from line to line, so that the weights
// add up to the sampled CPU time rounded to a microsecond; a stack whose share rounds to nothing has no line.
// Nanoseconds would be exact, but some readers make one sample of each unit.
//
// A frame is "function (file:line)" as py-spy writes it. Where samples of more than one thread (process) follow, the
// thread's name (then before it "process PID") is the outermost element. ";" in a name becomes ",", and control
// characters become blanks: the format has no escapes.
#pragma once

#include <string>

#include "profile/profile.h"

namespace plimsoll::formats::collapsed {

// The file's bytes.
std::string write(const profile::Profile& profile);

}  // namespace plimsoll::formats::collapsed
