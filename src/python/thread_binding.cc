// python/thread_binding.cc: threads of the threading module are sampled from their first instruction to their last.
//
// threading starts every thread by calling _thread.start_new_thread(body, ...). While a recording is active that name
// is bound to a ThreadStarter, which wraps `body` into a ThreadBody: a callable without a Python frame of its own (so
// that no traceback shows it), which registers the thread before it calls the body and takes leave after.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "alloc/imports.h"
#include "base/clock.h"
#include "python/allocation_hook.h"
#include "python/bindings.h"
#include "python/compat.h"
#include "python/interpreter_guard.h"
#include "python/recording.h"
#include "python/standin.h"
#include "python/text.h"

namespace nb = nanobind;

namespace plimsoll::python {
namespace {

// Never destroyed: threads and hooks may ask to the very end of the process.
struct Current {
  const pid_t process = ::getpid();
  std::mutex mutex;
  std::shared_ptr<capture::Session> session;
};
Current& current() {
  static Current* const made = new Current;
  return *made;
}

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
  std::string name;
  if (text != nullptr && PyUnicode_Check(text)) (void)utf8_of(text, "replace", name);
  return name;
}

// Those who call these are C: nothing may be thrown. (A thread without a name of its own, for want of memory, has the
// kernel's.)
std::string name_or_none(PyObject* body) noexcept {
  try {
    return name_of(body);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

void begin(PyObject* body) {
  if (const auto session = current_recording()) session->sampler().thread_started(name_or_none(body));
}
void end(PyObject* body) {
  if (const auto session = current_recording()) session->sampler().thread_ending(name_or_none(body));
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

// For _thread.start_new_thread or its like.
class ThreadStarter : public Standin {
 public:
  using Standin::Standin;
  nb::object call(const nb::args& args, const nb::kwargs& kwargs) {
    if (args.empty() || !PyCallable_Check(args[0].ptr())) return call_original(args, kwargs);
    nb::list wrapped(args);
    wrapped[0] = thread_body(args[0].ptr());
    return call_original(nb::tuple(wrapped), kwargs);
  }
};

// A gc callback: leaves a marker for each garbage collection.
class CollectionMarker {
 public:
  void call(const std::string& phase, const nb::dict& info) {
    if (phase == "start") {
      began_ns_ = monotonic_ns();
      return;
    }
    const auto session = current_recording();
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
  const auto session = current_recording();
  if (session == nullptr || session->exact() == nullptr) return;
  // Whoever is loading one may wait for the GIL.
  Py_BEGIN_ALLOW_THREADS;
  session->learn_modules(alloc::modules_loaded());
  Py_END_ALLOW_THREADS;
}

// For resource.setrlimit and resource.prlimit: a limit of addresses is not used up by what we have reserved.
class LimitSetter : public Standin {
 public:
  using Standin::Standin;
  nb::object call(const nb::args& args, const nb::kwargs& kwargs) {
    const std::size_t count = args.size();
    if (count >= 2) prepare_for(args[count - 2], args[count - 1]);
    return call_original(args, kwargs);
  }

 private:
  // What the limit is of, and how much it is now and at most. Whatever is wrong with these is for the original to say.
  static void prepare_for(nb::handle what, nb::handle limits) {
    if (!PyLong_Check(what.ptr()) || PyLong_AsLong(what.ptr()) != RLIMIT_AS || !PyTuple_Check(limits.ptr()) ||
        PyTuple_GET_SIZE(limits.ptr()) == 0 || !PyLong_Check(PyTuple_GET_ITEM(limits.ptr(), 0)))
      return PyErr_Clear();
    const long long bytes = PyLong_AsLongLong(PyTuple_GET_ITEM(limits.ptr(), 0));
    if (bytes >= 0) prepare_for_address_limit(static_cast<std::uint64_t>(bytes));
    PyErr_Clear();
  }
};

// For what loads code, _imp.create_dynamic, _imp.create_builtin and _ctypes.dlopen: looks at what has come.
class Loader : public Standin {
 public:
  using Standin::Standin;
  nb::object call(const nb::args& args, const nb::kwargs& kwargs) {
    const std::string name = args.empty() ? std::string{} : name_of_module(args[0]);
    if (makes_interpreters(name)) check(prepare_for_interpreter());
    nb::object loaded = call_original(args, kwargs);
    look_at_loaded();
    if (name == "_ctypes") loaded.attr("dlopen") = Loader(loaded.attr("dlopen"));
    if (name == "resource")
      for (const char* setter : {"setrlimit", "prlimit"})
        if (nb::hasattr(loaded, setter)) loaded.attr(setter) = LimitSetter(loaded.attr(setter));
    return loaded;
  }

 private:
  // If it is a module's spec.
  static std::string name_of_module(nb::handle spec) {
    const nb::object name = nb::getattr(spec, "name", nb::none());
    return nb::isinstance<nb::str>(name) ? nb::cast<std::string>(name) : std::string{};
  }
};

// For faulthandler.enable, which puts its handler over ours. A thread of ours that reads what has gone must not meet
// it: faulthandler would look at all threads while they run, and may fault itself. At its next look that thread puts
// our handler in front again.
class FaultHandlerSetter : public Standin {
 public:
  using Standin::Standin;
  nb::object call(const nb::args& args, const nb::kwargs& kwargs) {
    const Held held(current_recording());
    return call_original(args, kwargs);
  }

 private:
  // Keeps the reader of a recording, if there is one, from reading.
  class Held {
   public:
    explicit Held(std::shared_ptr<capture::Session> session) : session_(std::move(session)) {
      if (session_ == nullptr) return;
      const nb::gil_scoped_release release;
      session_->hold_reader();
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() {
      if (session_ != nullptr) session_->release_reader();
    }

   private:
    const std::shared_ptr<capture::Session> session_;
  };
};

}  // namespace

std::shared_ptr<capture::Session> current_recording() {
  if (current().process != ::getpid()) return nullptr;  // the child of a fork that Python does not know of
  const std::lock_guard guard(current().mutex);
  return current().session;
}

void set_current_recording(std::shared_ptr<capture::Session> session) {
  if (current().process != ::getpid()) forget_current_recording();
  const std::lock_guard guard(current().mutex);
  current().session.swap(session);
}

void forget_current_recording() { new (&current()) Current; }

void bind_threads(nb::module_& module) {
  bind_standin<ThreadStarter>(module, "ThreadStarter", "Starts threads that register themselves.");
  bind_standin<Loader>(module, "Loader", "Loads code whose allocations are recorded.");
  bind_standin<LimitSetter>(module, "LimitSetter", "Gives addresses back before there is a limit of them.");
  bind_standin<FaultHandlerSetter>(module, "FaultHandlerSetter", "Sets up handlers while nobody reads.");
  nb::class_<CollectionMarker>(module, "CollectionMarker", "A callback for gc.callbacks.")
      .def(nb::init<>())
      .def("__call__", &CollectionMarker::call);
}

}  // namespace plimsoll::python
