// python/thread_binding.cc: threads of the threading module are sampled from their first instruction to their last.
//
// threading starts every thread by calling _thread.start_new_thread(body, ...). While a recording is active that name
// is bound to a function that wraps `body` into a ThreadBody: a callable without a Python frame of its own (so that no
// traceback shows it), which registers the thread before it calls the body and takes leave after.
#include <nanobind/nanobind.h>

#include <atomic>
#include <string>

#include "python/bindings.h"
#include "python/recording.h"

namespace nb = nanobind;

namespace plimsoll::python {
namespace {

std::atomic<capture::Session*> recording{nullptr};

// What threading calls in the new thread.
class ThreadBody {
 public:
  explicit ThreadBody(nb::object body) : body_(std::move(body)) {}

  nb::object call(const nb::args& args, const nb::kwargs& kwargs) {
    if (capture::Session* session = current_recording()) session->sampler().thread_started(name());
    const Leave leave{*this};
    return body_(*args, **kwargs);
  }
  [[nodiscard]] std::string repr() const { return nb::repr(body_).c_str(); }

 private:
  // Takes leave however the body ends.
  struct Leave {
    ThreadBody& body;
    ~Leave() {
      if (capture::Session* session = current_recording()) session->sampler().thread_ending(body.name());
    }
  };

  // The name of the threading.Thread whose bound method the body is; empty for any other callable. The attribute is
  // read without running code of the program: a subclass may have overridden the property `name`.
  [[nodiscard]] std::string name() const {
    const nb::object thread = nb::getattr(body_, "__self__", nb::none());
    if (thread.is_none()) return {};
    const nb::object dict = nb::getattr(thread, "__dict__", nb::none());
    PyObject* text = PyDict_Check(dict.ptr()) ? PyDict_GetItemString(dict.ptr(), "_name") : nullptr;
    if (text == nullptr || !PyUnicode_Check(text)) return {};
    const char* bytes = PyUnicode_AsUTF8(text);
    if (bytes == nullptr) PyErr_Clear();
    return bytes != nullptr ? bytes : "";
  }

  nb::object body_;
};

}  // namespace

capture::Session* current_recording() { return recording.load(std::memory_order_acquire); }
void set_current_recording(capture::Session* session) { recording.store(session, std::memory_order_release); }

void bind_threads(nb::module_& module) {
  nb::class_<ThreadBody>(module, "ThreadBody", "A callable that registers the thread it runs on.")
      .def(nb::init<nb::object>())
      .def("__call__", &ThreadBody::call)
      .def("__repr__", &ThreadBody::repr);
}

}  // namespace plimsoll::python
