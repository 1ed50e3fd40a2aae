// remote/waiting.h: what a thread waits for, and who has the lock of the interpreter.
#pragma once

#include "base/activity.h"
#include "capture/wait_activity.h"
#include "cpython/gil.h"
#include "cpython/layout.h"
#include "memory/reader.h"
#include "os/os.h"
#include "remote/thread_states.h"

namespace plimsoll::remote {

// Whether the thread had the lock of its interpreter a moment ago. Free-threaded builds have one that nobody takes.
template <memory::Reader M>
bool holds_gil(const M& memory, const cpython::Layout& layout, Address runtime, const ThreadState& state) {
  if (layout.version.threading == cpython::Version::Threading::kFree) return false;
  const Address gil = cpython::gil_of(memory, layout, runtime, state.interpreter);
  Address holder{};
  std::uint32_t is_locked = 0;
  return !is_null(gil) && memory::load_address(memory, offset_by(gil, layout.gil.last_holder), holder) &&
         memory.load(offset_by(gil, layout.gil.is_locked), is_locked) && is_locked == 1 && holder == state.address;
}

// What a wait means.
template <memory::Reader M>
Activity activity_of(const M& memory, const cpython::Layout& layout, Address runtime, const ThreadState& state,
                     const os::KernelWait& wait) {
  if (wait.kind == os::KernelWait::Kind::kRunnable) return Activity::kRunning;
  return capture::activity_of(wait, [&](Address futex) {
    return cpython::is_in_gil(cpython::gil_of(memory, layout, runtime, state.interpreter), futex);
  });
}

}  // namespace plimsoll::remote
