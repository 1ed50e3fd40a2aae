// formats/vmprof/writer.h: a Profile -> a vmprof profile of version 6, as vmprof on 64-bit Linux writes it.
//
// There a sample has no weight: it stands for a period. The period written is the mean weight, or the period that was
// asked for if that is shorter; each thread and stack gets as many samples as its time holds periods, with what is left
// over shared out so that the sum is right to half a period. A profile whose samples weigh the same keeps every one.
//
// Ids of code are numbers in order, even for Python and odd for native code: readers need nothing else, and unlike
// addresses they are never used twice. PyPy's profiles have tags, others lines where frames have them.
#pragma once

#include <string>

#include "profile/profile.h"

namespace plimsoll::formats::vmprof {

// The file's bytes.
std::string write(const profile::Profile& profile);

}  // namespace plimsoll::formats::vmprof
