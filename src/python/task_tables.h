// python/task_tables.h: where asyncio in this process keeps its tasks.
#pragma once

#include "base/result.h"
#include "capture/cpu_sampler.h"

// As Python.h has it.
struct _object;

namespace plimsoll::python {

// By what CPython and its module _asyncio publish, proven by a task of known contents: `known` is what
// KnownTask.facts of python/plimsoll/_tasks.py has. An error says why that does not do.
Result<cpython::TaskLayout> find_tasks(const capture::Interpreter& interpreter, _object* known);

}  // namespace plimsoll::python
