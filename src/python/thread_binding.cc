// python/thread_binding.cc: threads of the threading module are sampled from their first instruction to their last.
//
// threading starts every thread by calling _thread.start_new_thread(body, ...). While a recording is active that name
// is bound to a ThreadStarter, which wraps `body` into a ThreadBody: a callable without a Python frame of its own (so that no
// traceback shows it), which registers the thread before it calls the body and takes leave after.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <atomic>
#include <cstring>
#include <string>

#include "base/clock.h"
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

// Stands for _thread.start_new_thread or its like; native, so that it leaves no frame in a traceback either.
class ThreadStarter {
 public:
  explicit ThreadStarter(nb::object start_thread) : start_thread_(std::move(start_thread)) {}

  nb::object call(const nb::args& args, const nb::kwargs& kwargs) {
    if (args.size() == 0 || !PyCallable_Check(args[0].ptr())) return start_thread_(*args, **kwargs);
    nb::list wrapped(args);
    wrapped[0] = nb::cast(new ThreadBody(nb::borrow(args[0])), nb::rv_policy::take_ownership);
    return start_thread_(*nb::tuple(wrapped), **kwargs);
  }
  [[nodiscard]] std::string repr() const { return nb::repr(start_thread_).c_str(); }

 private:
  nb::object start_thread_;
};

// A gc callback: leaves a marker for each garbage collection.
class CollectionMarker {
 public:
  void call(const std::string& phase, const nb::dict& info) {
    if (phase == "start") {
      began_ns_ = monotonic_ns();
      return;
    }
    capture::Session* session = current_recording();
    if (session == nullptr || began_ns_ == 0) return;
    capture::MarkerEvent marker{began_ns_, monotonic_ns() - began_ns_, capture::ThreadSerial{}, "GC", {}};
    for (const char* name : {"generation", "collected", "uncollectable"})
      if (info.contains(name)) marker.fields.emplace_back(name, std::to_string(nb::cast<std::int64_t>(info[name])));
    session->add_marker(std::move(marker));
  }

 private:
  std::int64_t began_ns_ = 0;
};

// Python's audit events come as C calls before the thing happens. Only one is ours; the rest cost a comparison.
int on_audit(const char* event, PyObject*, void*) {
  if (std::strcmp(event, "os.exec") != 0) return 0;
  if (capture::Session* session = current_recording()) session->prepare_exec();
  return 0;
}

}  // namespace

capture::Session* current_recording() { return recording.load(std::memory_order_acquire); }
void set_current_recording(capture::Session* session) { recording.store(session, std::memory_order_release); }

void bind_threads(nb::module_& module) {
  nb::class_<ThreadBody>(module, "ThreadBody", "A callable that registers the thread it runs on.")
      .def(nb::init<nb::object>())
      .def("__call__", &ThreadBody::call)
      .def("__repr__", &ThreadBody::repr);
  nb::class_<ThreadStarter>(module, "ThreadStarter", "Starts threads that register themselves.")
      .def(nb::init<nb::object>())
      .def("__call__", &ThreadStarter::call)
      .def("__repr__", &ThreadStarter::repr);
  nb::class_<CollectionMarker>(module, "CollectionMarker", "A callback for gc.callbacks.")
      .def(nb::init<>())
      .def("__call__", &CollectionMarker::call);
  module.def("install_exec_hook", [] {
    if (PySys_AddAuditHook(&on_audit, nullptr) != 0) throw nb::python_error();
  });
}

}  // namespace plimsoll::python
