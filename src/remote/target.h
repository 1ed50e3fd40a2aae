// remote/target.h: the CPython in another process: where it is, which one it is, and how it keeps its data.
#pragma once

#include <string>

#include "base/result.h"
#include "cpython/layout.h"
#include "memory/remote.h"
#include "os/process.h"

namespace plimsoll::remote {

// A Python program that runs. Good until the process ends or calls exec.
struct Target {
  os::Pid pid{};
  cpython::Layout layout;
  Address runtime{};    // _PyRuntime
  Address code_type{};  // PyCode_Type
  std::string image;    // the program or shared library that the interpreter is in, as the process sees it

  [[nodiscard]] memory::RemoteReader memory() const { return memory::RemoteReader(static_cast<pid_t>(pid)); }
};

// Finds it. Each error says what is the matter and what to do: there is no such process; it is no Python, or none that
// is supported; it may not be looked at.
Result<Target> find_target(os::Pid pid);

}  // namespace plimsoll::remote
