// heap/survivors.h: the three-snapshot rule: what came after the first, and is still there in the third.
//
// What a program needs for one piece of work comes and goes with it. Between the second and the third snapshot the same
// work is done again: what is left of the first time has been forgotten, or is a cache.
#pragma once

#include <vector>

#include "heap/analysis.h"

namespace plimsoll::heap {

// The objects of `third` that `second` has, too, and `first` has not. All three must be of one process: an object is
// the same by its address and class, also if it was freed and another of its class has taken its place.
NodeSet survivors(const Snapshot& first, const Snapshot& second, const Snapshot& third);

}  // namespace plimsoll::heap
