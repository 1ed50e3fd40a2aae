// python/task_tables.h: where asyncio in this process keeps its tasks.
#pragma once

#include "base/result.h"
#include "capture/cpu_sampler.h"

// As Python.h has it.
struct _object;

namespace plimsoll::python {

// By what CPython and its module _asyncio publish, or up to 3.13 by a table of ours, proven by a task of known
// contents: `known` is what KnownTask.facts of python/plimsoll/_tasks.py has. An error says why that does not do. To be
// called in the thread that made it.
Result<cpython::TaskLayout> find_tasks(const capture::Interpreter& interpreter, _object* known);

}  // namespace plimsoll::python
