// profile/join.h: the profiles of several processes as one.
#pragma once

#include "base/result.h"
#include "profile/profile.h"

namespace plimsoll::profile {

// Adds what `more` holds to `all`: its processes, threads and all that they did, at the times when they did it, by the
// monotonic clock, which must be that of one machine. The facts of the session (meta) stay those of `all`, and so do
// attachments. An exact recording loses its peak: when most was alive in all processes together is not known.
// Fails, and changes nothing, if one of them was sampled at other distances of allocation, and if a thread of `more` is
// in `all` already, as it was recorded then.
Status join(Profile& all, Profile more);

}  // namespace plimsoll::profile
