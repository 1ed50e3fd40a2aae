// python/recording.h: which session is recording this process, for hooks that cannot be handed it.
#pragma once

#include "capture/session.h"

namespace plimsoll::python {

// The active session or null. Set and read with the GIL held, or, in free-threaded builds, between two attach points.
capture::Session* current_recording();
void set_current_recording(capture::Session* session);

}  // namespace plimsoll::python
