// profile/without_native.h: stacks of Python functions only, or with no more native frames than a reader of Python
// needs.
#pragma once

#include <string_view>

#include "profile/profile.h"

namespace plimsoll::profile {

// Takes native frames off all stacks: their time is that of the Python functions that called them.
void leave_out_native(Profile& profile);

// Leaves of each library's native frames the one that it was entered by, which gets the time of all that it called
// inside the library. Those of `interpreter`, which is how Python itself works, go to the Python functions; and what
// called Python's outermost function is left out.
void fold_native(Profile& profile, std::string_view interpreter);
// The same with the interpreter that the recording names (meta "native").
void fold_native(Profile& profile);

}  // namespace plimsoll::profile
