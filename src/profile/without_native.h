// profile/without_native.h: stacks of Python functions only.
#pragma once

#include "profile/profile.h"

namespace plimsoll::profile {

// Takes native frames off all stacks: their time is that of the Python functions that called them.
void leave_out_native(Profile& profile);

}  // namespace plimsoll::profile
