// python/interpreter_guard.h: the moment before a process can have interpreters that run at the same time, each with a
// GIL of its own (from CPython 3.12 on). What records allocations takes no lock until then.
#pragma once

#include <Python.h>

#include <string_view>

#include "base/result.h"

namespace plimsoll::python {

// Whether there are such interpreters, or may be at any moment. Else `prepare` is called before there are, once or
// more often, with the GIL; if it fails, so does the making of the interpreter. Needs the GIL.
//
// From 3.13 on they are made by _interpreters.create, which asyncio and concurrent.futures bring with them from 3.14 on
// without calling it: that name is bound to a function of ours, for good. Where something else may hold the original,
// and of other modules that make interpreters, to be imported is taken for the making of one.
bool may_have_interpreters_at_once(Status (*prepare)());

// Whether such interpreters may be made once a module of this name is loaded.
bool makes_interpreters(std::string_view module);

}  // namespace plimsoll::python
