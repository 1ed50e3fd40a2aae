// python/code_hook.h: tells a registry of every code object that is about to be freed.
#pragma once

#include "capture/code_registry.h"

namespace plimsoll::python {

// From now on `registry` hears of every death of a code object, in any interpreter of the process; null: nobody does.
// When it returns, no thread is inside the former registry any more. Thread-safe.
//
// It replaces PyCode_Type.tp_dealloc by a function that reports and then calls the original. PyCode_AddWatcher (3.12+)
// would serve one interpreter each, and co_extra's freefunc (before) only objects marked in advance; the type's
// destructor is one place for all versions and interpreters.
void watch_code_deaths(capture::CodeRegistry* registry);

// In the child of a fork: nobody is told any more, and nobody is waited for.
void watch_code_deaths_after_fork();

}  // namespace plimsoll::python
