// python/interpreter.h: the interpreter that we run in, as the capture engine wants it.
#pragma once

#include "base/result.h"
#include "capture/cpu_sampler.h"

namespace plimsoll::python {

// The version and build of it.
cpython::Version own_version();

// Finds the layout of this interpreter and proves it: our walker must see the caller's own Python stack exactly as
// CPython's API does, names, lines and all, and must read strings of every width. A difference is an error that names
// it. Needs an attached thread state and at least one Python frame.
Result<capture::Interpreter> find_interpreter();

// Whether the calling thread has the GIL. Takes no lock.
bool has_gil();

// The word that is 0 while nobody has the caller's GIL; null if that is not known. Needs the GIL.
Address word_of_gil(const capture::Interpreter& interpreter);

}  // namespace plimsoll::python
