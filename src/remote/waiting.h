// remote/waiting.h: what a thread waits for, and who has the lock of the interpreter.
#pragma once

#include <optional>

#include "base/activity.h"
#include "capture/wait_activity.h"
#include "cpython/gil.h"
#include "cpython/layout.h"
#include "memory/reader.h"
#include "os/os.h"
#include "remote/thread_states.h"

namespace plimsoll::remote {

// Which thread state had the lock of an interpreter a moment ago: null if none had it; none if that cannot be told.
// Free-threaded builds have a lock that nobody takes.
template <memory::Reader M>
std::optional<Address> gil_holder(const M& memory, const cpython::Layout& layout, Address runtime,
                                  Address interpreter) {
  if (layout.version.threading == cpython::Version::Threading::kFree) return std::nullopt;
  const Address gil = cpython::gil_of(memory, layout, runtime, interpreter);
  Address holder{};
  std::uint32_t is_locked = 0;
  if (is_null(gil) || !memory::load_address(memory, offset_by(gil, layout.gil.last_holder), holder) ||
      !memory.load(offset_by(gil, layout.gil.is_locked), is_locked))
    return std::nullopt;
  return is_locked == 1 ? holder : Address{};
}

// Whether the thread had the lock of its interpreter a moment ago.
template <memory::Reader M>
bool holds_gil(const M& memory, const cpython::Layout& layout, Address runtime, const ThreadState& state) {
  return gil_holder(memory, layout, runtime, state.interpreter) == state.address;
}

// Whether nobody has had the lock of its interpreter since the thread, or that cannot be told.
template <memory::Reader M>
bool was_last_in_gil(const M& memory, const cpython::Layout& layout, Address runtime, const ThreadState& state) {
  if (layout.version.threading == cpython::Version::Threading::kFree) return true;
  const Address gil = cpython::gil_of(memory, layout, runtime, state.interpreter);
  Address holder{};
  return is_null(gil) || !memory::load_address(memory, offset_by(gil, layout.gil.last_holder), holder) ||
         holder == state.address;
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
