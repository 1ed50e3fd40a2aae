// remote/waiting.h: what a thread waits for, and who has the lock of the interpreter.
#pragma once

#include "base/activity.h"
#include "cpython/layout.h"
#include "memory/reader.h"
#include "os/os.h"
#include "remote/thread_states.h"

namespace plimsoll::remote {

// Where the lock of a thread's interpreter is; null if it cannot be told.
template <memory::Reader M>
Address gil_of(const M& memory, const cpython::Layout& layout, Address runtime, const ThreadState& state) {
  if (layout.gil.in_runtime != cpython::kNoField) return offset_by(runtime, layout.gil.in_runtime);
  Address gil{};
  if (layout.gil.in_interpreter == cpython::kNoField ||
      !memory::load_address(memory, offset_by(state.interpreter, layout.gil.in_interpreter), gil))
    return {};
  return gil;
}

// Whether the thread had it a moment ago. Free-threaded builds have one that nobody takes.
template <memory::Reader M>
bool holds_gil(const M& memory, const cpython::Layout& layout, Address runtime, const ThreadState& state) {
  if (layout.version.threading == cpython::Version::Threading::kFree) return false;
  const Address gil = gil_of(memory, layout, runtime, state);
  Address holder{};
  std::uint32_t is_locked = 0;
  return !is_null(gil) && memory::load_address(memory, offset_by(gil, layout.gil.last_holder), holder) &&
         memory.load(offset_by(gil, layout.gil.is_locked), is_locked) && is_locked == 1 && holder == state.address;
}

// What a wait means.
template <memory::Reader M>
Activity activity_of(const M& memory, const cpython::Layout& layout, Address runtime, const ThreadState& state,
                     const os::KernelWait& wait) {
  using Kind = os::KernelWait::Kind;
  // The lock, its condition variables and their mutexes are one structure, of 208 bytes up to 3.15.
  constexpr std::uint64_t kGilSize = 256;
  switch (wait.kind) {
    case Kind::kRunnable: return Activity::kRunning;
    case Kind::kFutex: {
      const Address gil = gil_of(memory, layout, runtime, state);
      const bool is_gil = !is_null(gil) && raw(wait.futex) >= raw(gil) && raw(wait.futex) - raw(gil) < kGilSize;
      return is_gil ? Activity::kGil : Activity::kLock;
    }
    case Kind::kFileLock: return Activity::kLock;
    case Kind::kIo: return Activity::kIo;
    case Kind::kSleep: return Activity::kSleep;
    case Kind::kUnknown:
    case Kind::kOther: break;
  }
  return Activity::kOther;
}

}  // namespace plimsoll::remote
