// remote/permission.h: why a process may not be looked at, and what to do about it.
#pragma once

#include "base/result.h"
#include "os/process.h"

namespace plimsoll::remote {

// The reason, and the command that gives the permission. Pure.
Error explain_refusal(os::Pid pid, const os::Access& access);

// The same for this machine.
inline Error refusal(os::Pid pid) { return explain_refusal(pid, os::access_to(pid)); }

}  // namespace plimsoll::remote
