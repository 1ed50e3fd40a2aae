// remote/target.h: the CPython in another process: where it is, which one it is, and how it keeps its data.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cpython/layout.h"
#include "memory/remote.h"
#include "os/process.h"

namespace plimsoll::remote {

// Whether a file that is mapped is the module in C of greenlet.
constexpr bool is_greenlet_module(std::string_view path) { return path.find("/_greenlet.") != std::string_view::npos; }

// A Python program that runs. Good until the process ends or calls exec.
struct Target {
  os::Pid pid{};
  cpython::Layout layout;
  Address runtime{};           // _PyRuntime
  Address code_type{};         // PyCode_Type
  bool has_greenlets = false;  // the module greenlet is loaded, by the name of its file
  std::string image;           // the program or shared library that the interpreter is in, as the process sees it

  [[nodiscard]] memory::RemoteReader memory() const { return memory::RemoteReader(static_cast<pid_t>(pid)); }
};

// Finds it. Each error says what is the matter and what to do: there is no such process; it is no Python, or none that
// is supported; it may not be looked at.
Result<Target> find_target(os::Pid pid);

// The same of a process that has just been started, and is no Python before its interpreter has been loaded: tries
// again for some seconds, until it is one, may not be looked at, or `gives_up` is true.
Result<Target> await_target(os::Pid pid, const std::function<bool()>& gives_up);

// The same of a process that somebody has named: one that was started within the last two seconds, as by a shell in the
// line before, may be on its way to Python, and has the rest of that time.
Result<Target> find_named_target(os::Pid pid);

// The table of offsets that the module _asyncio publishes (cpython/task_layout.h): in its own file, or in that of the
// interpreter, if it is built in. None if the module is not loaded, or publishes none (before 3.14).
std::optional<Address> find_asyncio_debug(os::Pid pid);

}  // namespace plimsoll::remote
