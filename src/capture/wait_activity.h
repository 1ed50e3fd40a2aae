// capture/wait_activity.h: what a wait in the kernel is to a Python program.
#pragma once

#include "base/activity.h"
#include "os/os.h"

namespace plimsoll::capture {

// `is_of_gil(address)` says of a futex whether it belongs to the thread's interpreter lock; it is asked only of
// futexes. A thread that could run is kReady: whether it does run, the caller knows.
template <typename IsOfGil>
Activity activity_of(const os::KernelWait& wait, IsOfGil is_of_gil) {
  using Kind = os::KernelWait::Kind;
  switch (wait.kind) {
    case Kind::kRunnable: return Activity::kReady;
    case Kind::kFutex: return is_of_gil(wait.futex) ? Activity::kGil : Activity::kLock;
    case Kind::kFileLock: return Activity::kLock;
    case Kind::kIo: return Activity::kIo;
    case Kind::kSleep: return Activity::kSleep;
    case Kind::kUnknown:
    case Kind::kOther: break;
  }
  return Activity::kOther;
}

}  // namespace plimsoll::capture
