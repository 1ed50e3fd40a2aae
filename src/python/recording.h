// python/recording.h: which session is recording this process, for hooks that cannot be handed it.
#pragma once

#include <memory>

#include "capture/session.h"

namespace plimsoll::python {

// The active session, or null. It may end at any time that the caller is without the GIL, or where there is none, but
// it is there for as long as the caller has it.
std::shared_ptr<capture::Session> current_recording();
void set_current_recording(std::shared_ptr<capture::Session> session);
// In the child of a fork: there is none. The session is leaked: half of it is a thread that does not exist here.
void forget_current_recording();

}  // namespace plimsoll::python
