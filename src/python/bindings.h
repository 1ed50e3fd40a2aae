// python/bindings.h: the parts of the extension module, one function a file.
#pragma once

#include <nanobind/nanobind.h>

#include "base/result.h"
#include "python/column.h"
#include "python/text.h"

namespace plimsoll::python {

void bind_errors(nanobind::module_& module);     // exceptions
void bind_files(nanobind::module_& module);      // write a file whole or not at all
void bind_session(nanobind::module_& module);    // Session: record this process
void bind_threads(nanobind::module_& module);    // threads from their first instruction
void bind_processes(nanobind::module_& module);  // fork, exec and _exit
void bind_signals(nanobind::module_& module);    // signals of the program that are ours, too
void bind_tags(nanobind::module_& module);       // tags
void bind_columns(nanobind::module_& module);    // what memoryviews look at
void bind_memory(nanobind::module_& module);     // what a Profile knows of memory
void bind_profile(nanobind::module_& module);    // Profile: read, ask, write
void bind_heap(nanobind::module_& module);       // heap snapshots: take, read, ask
void bind_heap_sets(nanobind::module_& module);  // sets of a snapshot's objects
void bind_native(nanobind::module_& module);     // native frames of this thread

// Raises the Python exception for an Error: PermissionError, ValueError (usage), plimsoll.ProfileError (bad input),
// plimsoll.UnsupportedError, or OSError.
[[noreturn]] void raise(const Error& error);

template <typename T>
T value_or_raise(Result<T> result) {
  if (!result.ok()) raise(result.error());
  return result.take();
}
inline void check(const Status& status) {
  if (!status.ok()) raise(status.error());
}

}  // namespace plimsoll::python
