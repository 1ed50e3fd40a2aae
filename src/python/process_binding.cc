// python/process_binding.cc: what a recording does when its process forks, becomes another program, or ends.
#include <nanobind/nanobind.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "capture/tick_signals.h"
#include "python/allocation_hook.h"
#include "python/bindings.h"
#include "python/recording.h"
#include "python/standin.h"

namespace nb = nanobind;

namespace plimsoll::python {
namespace {

// Which the caller has. (In a child that C code has made meanwhile it may be nobody's.)
void let_go(const nb::object& lock) {
  const nb::object done = nb::steal(PyObject_CallMethod(lock.ptr(), "release", nullptr));
  if (!done.is_valid()) PyErr_Clear();
}

// A threading.RLock, as long as this lives. In C++, for between two instructions of Python a signal handler of the
// program's may run, and raise; so it may in a wait of the lock's own.
class Locked {
 public:
  // Without `patience_ns`, waits until it has it.
  explicit Locked(nb::object lock, std::optional<std::int64_t> patience_ns = {}) : lock_(std::move(lock)) {
    const std::int64_t began_ns = monotonic_ns();
    for (is_held_ = try_lock(); !is_held_; is_held_ = try_lock()) {
      if (patience_ns && monotonic_ns() - began_ns > *patience_ns) return;
      constexpr std::chrono::milliseconds kPause{1};
      const nb::gil_scoped_release release;
      std::this_thread::sleep_for(kPause);
    }
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  ~Locked() {
    if (is_held_) let_go(lock_);
  }
  // The lock stays held: whoever calls this lets go of it.
  void keep() { is_held_ = false; }

 private:
  bool try_lock() { return nb::cast<bool>(lock_.attr("acquire")(false)); }

  const nb::object lock_;
  bool is_held_ = false;
};

// What os.fork calls. Not in Python: a handler of the program's that raises there, for which an alarm is enough, would
// be told of as ignored, and leave the recording held, or let go where it never was: the next fork waited without end.
class ForkHooks {
 public:
  // `lock` is held by whoever begins or ends a recording; `leave_parents` is for the child of a fork that none of this
  // was told of.
  ForkHooks(nb::object lock, nb::object leave_parents)
      : lock_(std::move(lock)), leave_parents_(std::move(leave_parents)) {}

  void before() {
    if (process_ != ::getpid()) leave_parents_();
    Locked locked(lock_);
    locked.keep();
    if (depth_++ > 0) return;  // code of the program's that runs before a fork has forked
    caller_ = std::this_thread::get_id();
    held_ = current_recording();
    if (held_ == nullptr) return;
    const nb::gil_scoped_release release;
    held_->hold_for_fork();
  }

  void in_parent() {
    if (!is_prepared()) return;
    if (--depth_ == 0) {
      if (held_ != nullptr) held_->release_after_fork();
      held_.reset();
    }
    let_go(lock_);
  }

  // In the child of a fork, prepared or not: nobody has the lock.
  void in_child() {
    if (!is_prepared()) lock_.attr("_at_fork_reinit")();  // whoever has it may not exist here
    for (; depth_ > 0 && is_prepared(); --depth_) let_go(lock_);
    depth_ = 0;
    held_.reset();
    process_ = ::getpid();
  }

 private:
  [[nodiscard]] bool is_prepared() const { return depth_ > 0 && caller_ == std::this_thread::get_id(); }

  const nb::object lock_;
  const nb::object leave_parents_;
  pid_t process_ = ::getpid();
  // With the lock held.
  int depth_ = 0;
  std::thread::id caller_;
  std::shared_ptr<capture::Session> held_;
};

template <void (ForkHooks::*kHook)()>
PyObject* call_hook(PyObject* kept, PyObject* /*arguments*/) noexcept {
  try {
    (static_cast<ForkHooks*>(PyCapsule_GetPointer(kept, nullptr))->*kHook)();
  } catch (nb::python_error& error) {
    error.restore();
    return nullptr;
  }
  Py_RETURN_NONE;
}

// Its three hooks, as functions in C. (Objects of a class of ours would keep that class: an interpreter lets go of what
// its forks call when all else has gone, up to 3.9 after its last collection, and then no other one could load us.)
nb::tuple fork_hooks(nb::object lock, nb::object leave_parents) {
  static constexpr PyMethodDef kHooks[] = {
      {"before_fork", call_hook<&ForkHooks::before>, METH_NOARGS, nullptr},
      {"after_fork_in_parent", call_hook<&ForkHooks::in_parent>, METH_NOARGS, nullptr},
      {"after_fork_in_child", call_hook<&ForkHooks::in_child>, METH_NOARGS, nullptr}};
  const nb::capsule kept(new ForkHooks(std::move(lock), std::move(leave_parents)),
                         [](void* hooks) noexcept { delete static_cast<ForkHooks*>(hooks); });
  nb::list functions;
  for (const PyMethodDef& hook : kHooks)  // (Python does not write to them.)
    functions.append(nb::steal(PyCFunction_New(const_cast<PyMethodDef*>(&hook), kept.ptr())));
  return nb::tuple(functions);
}

// For os.fork and os.forkpty: Python counts the threads that a process has then, and from 3.15 on its warning of more
// than one may be an error. So those of the recording are none of them.
class ForkCaller : public Standin {
  class Rest {
   public:
    explicit Rest(std::shared_ptr<capture::Session> session) : session_(std::move(session)) {
      if (session_ == nullptr) return;
      const nb::gil_scoped_release release;
      must_wake_ = session_->rest_if_alone();
    }
    Rest(const Rest&) = delete;
    Rest& operator=(const Rest&) = delete;
    ~Rest() {
      if (!must_wake_ || process_ != ::getpid()) return;
      const nb::gil_scoped_release release;
      session_->wake();
    }

   private:
    const std::shared_ptr<capture::Session> session_;
    const pid_t process_ = ::getpid();
    bool must_wake_ = false;
  };

 public:
  using Standin::Standin;
  nb::object call(const nb::args& args, const nb::kwargs& kwargs) {
    const Rest rest(current_recording());
    return call_original(args, kwargs);
  }
};

// For os.execv and os.execve: what is recorded so far is written before the process becomes another program, nobody
// begins a recording meanwhile, and no tick is on its way, nor waits for a thread to let it in: the next program would
// meet it, and end.
class ExecCaller : public Standin {
  // Whatever comes back from an exec has failed.
  struct GoesOn {
    const std::shared_ptr<capture::Session> session;
    ~GoesOn() {
      if (session != nullptr) session->exec_has_failed();
    }
  };

 public:
  ExecCaller(nb::object original, nb::object lock) : Standin(std::move(original)), lock_(std::move(lock)) {}
  nb::object call(const nb::args& args, const nb::kwargs& kwargs) {
    constexpr std::int64_t kPatience = 2'000'000'000;  // for the end of a recording, which may be slow to write
    const Locked locked(lock_, kPatience);
    const GoesOn goes_on{current_recording()};
    if (goes_on.session != nullptr) {
      close_allocation_epoch();
      goes_on.session->prepare_exec();
    }
    capture::take_blocked_ticks();
    return call_original(args, kwargs);
  }

 private:
  const nb::object lock_;
};

// For os._exit, which runs no exit handlers; multiprocessing's forked children end with it. What is to be done before
// is done, and whatever becomes of that, the process ends here.
class ExitCaller : public Standin {
 public:
  ExitCaller(nb::object original, nb::object before) : Standin(std::move(original)), before_(std::move(before)) {}
  nb::object call(const nb::args& args, const nb::kwargs& kwargs) {
    try {
      before_();
    } catch (nb::python_error&) {
    }
    return call_original(args, kwargs);
  }

 private:
  nb::object before_;
};

}  // namespace

void bind_processes(nb::module_& module) {
  module.def(
      "fork_hooks", &fork_hooks, nb::arg("lock"), nb::arg("leave_parents"),
      "What os.fork is to call before, in the parent and in the child: no signal handler of the program's runs in "
      "these.");
  bind_standin<ForkCaller>(module, "ForkCaller", "Forks while no thread of the recording is there.");
  bind_standin<ExecCaller, nb::object>(module, "ExecCaller",
                                       "Becomes another program when what is recorded is written.");
  bind_standin<ExitCaller, nb::object>(module, "ExitCaller", "Ends the process when what is recorded is written.");
}

}  // namespace plimsoll::python
