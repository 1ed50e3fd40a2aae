// python/released_gil.h: long work beside other threads, which looks in at Python now and then.
#pragma once

#include <Python.h>

namespace plimsoll::python {

// While it lives, the calling thread goes without the GIL. It can have it back for a moment, in the interpreter that it
// came from: PyGILState, and so nanobind's gil_scoped_acquire, knows the first interpreter only, up to Python 3.11, and
// in another one waits for what this thread has itself.
class ReleasedGil {
 public:
  ReleasedGil() : thread_(PyEval_SaveThread()) {}
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;
  ~ReleasedGil() { PyEval_RestoreThread(thread_); }

  // What `call`, which throws nothing, says with the GIL.
  template <typename Call>
  auto taken_back_for(Call call) {
    PyEval_RestoreThread(thread_);
    const auto said = call();
    thread_ = PyEval_SaveThread();
    return said;
  }

 private:
  PyThreadState* thread_;
};

}  // namespace plimsoll::python
