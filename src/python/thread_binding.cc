// python/thread_binding.cc: threads of the threading module are sampled from their first instruction to their last.
//
// threading starts every thread by calling _thread.start_new_thread(body, ...). While a recording is active that name
// is bound to a ThreadStarter, which wraps `body` into a ThreadBody: a callable without a Python frame of its own (so
// that no traceback shows it), which registers the thread before it calls the body and takes leave after.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <atomic>
#include <cstring>
#include <string>
#include <string_view>

#include "alloc/imports.h"
#include "base/clock.h"
#include "python/allocation_hook.h"
#include "python/bindings.h"
#include "python/compat.h"
#include "python/interpreter_guard.h"
#include "python/recording.h"

namespace nb = nanobind;

namespace plimsoll::python {
namespace {

std::atomic<capture::Session*> recording{nullptr};

// What threading calls in the new thread. A type in the C API's own terms, not one of nanobind's: up to 3.13 a daemon
// thread that outlives the interpreter is ended by pthread_exit, which unwinds the stack out of PyObject_Call. None of
// the frames on it may catch that, or run a destructor.
struct ThreadBody {
  PyObject_HEAD PyObject* body;
};

// The name of the threading.Thread whose bound method the body is; empty for any other callable. The attribute is
// read without running code of the program: a subclass may have overridden the property `name`.
std::string name_of(PyObject* body) {
  const ErrorSetAside error;
  const nb::object thread = nb::steal(PyObject_GetAttrString(body, "__self__"));
  const nb::object dict = thread.is_valid() ? nb::steal(PyObject_GetAttrString(thread.ptr(), "__dict__")) : thread;
  const bool has_dict = dict.is_valid() && PyDict_Check(dict.ptr());
  PyObject* text = has_dict ? PyDict_GetItemString(dict.ptr(), "_name") : nullptr;
  const char* bytes = text != nullptr && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : nullptr;
  return bytes != nullptr ? bytes : "";
}

void begin(PyObject* body) {
  if (capture::Session* session = current_recording()) session->sampler().thread_started(name_of(body));
}
void end(PyObject* body) {
  if (capture::Session* session = current_recording()) session->sampler().thread_ending(name_of(body));
}

PyObject* call_body(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* body = reinterpret_cast<ThreadBody*>(self)->body;
  begin(body);
  PyObject* result = tell_of_uncaught(body, PyObject_Call(body, args, kwargs));
  end(body);
  return result;
}

PyObject* repr_of_body(PyObject* self) { return PyObject_Repr(reinterpret_cast<ThreadBody*>(self)->body); }

int traverse_body(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<ThreadBody*>(self)->body);
  return 0;
}

int clear_body(PyObject* self) {
  Py_CLEAR(reinterpret_cast<ThreadBody*>(self)->body);
  return 0;
}

void dealloc_body(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear_body(self);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

PyTypeObject* make_thread_body_type() {
  PyType_Slot slots[] = {
      {Py_tp_call, reinterpret_cast<void*>(call_body)},         {Py_tp_repr, reinterpret_cast<void*>(repr_of_body)},
      {Py_tp_traverse, reinterpret_cast<void*>(traverse_body)}, {Py_tp_clear, reinterpret_cast<void*>(clear_body)},
      {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_body)},   {0, nullptr}};
  PyType_Spec spec{"plimsoll._core.ThreadBody", sizeof(ThreadBody), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

nb::object thread_body(PyObject* body) {
  static PyTypeObject* const type = make_thread_body_type();
  ThreadBody* self = type != nullptr ? PyObject_GC_New(ThreadBody, type) : nullptr;
  if (self == nullptr) throw nb::python_error();
  Py_INCREF(body);
  self->body = body;
  PyObject_GC_Track(self);
  return nb::steal(reinterpret_cast<PyObject*>(self));
}

// Stands for _thread.start_new_thread or its like; native, so that it leaves no frame in a traceback either.
class ThreadStarter {
 public:
  explicit ThreadStarter(nb::object start_thread) : start_thread_(std::move(start_thread)) {}

  nb::object call(const nb::args& args, const nb::kwargs& kwargs) {
    if (args.empty() || !PyCallable_Check(args[0].ptr())) return start_thread_(*args, **kwargs);
    nb::list wrapped(args);
    wrapped[0] = thread_body(args[0].ptr());
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

// Modules may have been loaded, of whose code nothing has been called yet.
void look_at_loaded() {
  look_for_new_modules();
  capture::Session* session = current_recording();
  if (session == nullptr || session->exact() == nullptr) return;
  // Whoever is loading one may wait for the GIL.
  Py_BEGIN_ALLOW_THREADS;
  session->learn_modules(alloc::modules_loaded());
  Py_END_ALLOW_THREADS;
}

// What loads an extension module (_imp.create_dynamic), and then looks at what came with it. Without a Python frame of
// its own, as ThreadStarter.
class ModuleLoader {
 public:
  explicit ModuleLoader(nb::object load) : load_(std::move(load)) {}

  nb::object call(const nb::args& args, const nb::kwargs& kwargs) {
    nb::object module = load_(*args, **kwargs);
    look_at_loaded();
    return module;
  }
  [[nodiscard]] std::string repr() const { return nb::repr(load_).c_str(); }

 private:
  nb::object load_;
};

// Python's audit events come as C calls before the thing happens. Three are ours; the rest cost a comparison or two.
int on_audit(const char* event, PyObject* args, void*) {
  if (announces_interpreters(event, args)) {
    const Status prepared = prepare_for_interpreter();
    if (!prepared.ok()) PyErr_SetString(PyExc_RuntimeError, prepared.error().message.c_str());
    return prepared.ok() ? 0 : -1;
  }
  // A function of a library is looked up before it can be called.
  constexpr std::string_view kLookUp = "ctypes.dlsym";  // and ctypes.dlsym/handle
  if (std::strncmp(event, kLookUp.data(), kLookUp.size()) == 0) look_at_loaded();
  if (std::strcmp(event, "os.exec") != 0) return 0;
  capture::Session* session = current_recording();
  if (session == nullptr) return 0;
  close_allocation_epoch();
  session->prepare_exec();
  return 0;
}

}  // namespace

capture::Session* current_recording() { return recording.load(std::memory_order_acquire); }
void set_current_recording(capture::Session* session) { recording.store(session, std::memory_order_release); }

void bind_threads(nb::module_& module) {
  nb::class_<ThreadStarter>(module, "ThreadStarter", "Starts threads that register themselves.")
      .def(nb::init<nb::object>())
      .def("__call__", &ThreadStarter::call)
      .def("__repr__", &ThreadStarter::repr);
  nb::class_<ModuleLoader>(module, "ModuleLoader", "Loads extension modules whose allocations are recorded.")
      .def(nb::init<nb::object>())
      .def("__call__", &ModuleLoader::call)
      .def("__repr__", &ModuleLoader::repr);
  nb::class_<CollectionMarker>(module, "CollectionMarker", "A callback for gc.callbacks.")
      .def(nb::init<>())
      .def("__call__", &CollectionMarker::call);
  module.def("install_exec_hook", [] {
    if (PySys_AddAuditHook(&on_audit, nullptr) != 0) throw nb::python_error();
  });
}

}  // namespace plimsoll::python
