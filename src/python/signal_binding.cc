// python/signal_binding.cc: the program's signals while ticks of ours are signals, too: it may set what ours do, and
// wait for them, and sees those that others send and no ticks.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <utility>

#include "base/clock.h"
#include "capture/tick_signals.h"
#include "os/os.h"
#include "os/termination.h"
#include "python/bindings.h"
#include "python/recording.h"
#include "python/standin.h"

namespace nb = nanobind;

namespace plimsoll::python {
namespace {

// Whether an argument is the number of a signal by which ticks come. What is none is for the original to say.
bool is_tick_signal(nb::handle signal) {
  const long number = PyLong_Check(signal.ptr()) ? PyLong_AsLong(signal.ptr()) : 0;
  PyErr_Clear();
  return number > 0 && number <= SIGRTMAX && capture::is_tick_signal(static_cast<int>(number));
}

// The signals to wait for, which may come from an iterator, and that can be asked once.
nb::list list_of(nb::handle signals) {
  PyObject* list = PySequence_List(signals.ptr());
  if (list == nullptr) throw nb::python_error();
  return nb::steal<nb::list>(list);
}

// While the program sets what a signal of ours does, as one that sets all signals to their defaults: a tick would kill
// it. (One that another thread has still to take, which this does not hold up, comes within microseconds.)
class TicksHeld {
 public:
  explicit TicksHeld(std::shared_ptr<capture::Session> session) : session_(std::move(session)) {
    if (session_ != nullptr) session_->sampler().pause();
  }
  TicksHeld(const TicksHeld&) = delete;
  TicksHeld& operator=(const TicksHeld&) = delete;
  ~TicksHeld() {
    if (session_ != nullptr) session_->sampler().resume();
  }

 private:
  const std::shared_ptr<capture::Session> session_;
  const SignalsBlocked blocked_ = capture::ticks_blocked();
};

// For _signal.signal. What servers do when they have shut down upon SIGTERM is to give up their handler and raise the
// signal again, which is to find that of the recording, as if there had never been another.
class SignalSetter : public Standin {
 public:
  using Standin::Standin;
  nb::object call(const nb::args& args, const nb::kwargs& kwargs) {
    if (!args.empty() && is_tick_signal(args[0])) return set_ours(args, kwargs);
    nb::object before = call_original(args, kwargs);
    os::look_at_termination_again();
    return before;
  }

 private:
  nb::object set_ours(const nb::args& args, const nb::kwargs& kwargs) {
    struct PutBack {
      int signal;
      ~PutBack() { capture::put_tick_handler_back(signal); }
    };
    const TicksHeld held(current_recording());
    const PutBack put_back{nb::cast<int>(args[0])};
    return call_original(args, kwargs);
  }
};

// For _signal.sigwaitinfo and sigtimedwait: a tick that a thread has blocked is not what it waits for.
class SignalWaiter : public Standin {
 public:
  using Standin::Standin;
  nb::object call(const nb::args& args, const nb::kwargs& kwargs) {
    if (args.empty()) return call_original(args, kwargs);
    nb::list words(args);
    const nb::list awaited = list_of(args[0]);
    words[0] = awaited;
    const std::int64_t began_ns = monotonic_ns();
    for (;;) {
      nb::object info = call_original(nb::tuple(words), kwargs);
      if (info.is_none() || !is_tick(info)) return info;
      if (args.size() > 1) words[1] = rest_of(args[1], began_ns);
    }
  }

 private:
  static bool is_tick(const nb::object& info) {
    const nb::object signal = info.attr("si_signo");
    return is_tick_signal(signal) && os::is_sent_by_ticks(nb::cast<int>(signal), nb::cast<int>(info.attr("si_code")));
  }
  // Of a time to wait, which the original has taken.
  static nb::object rest_of(nb::handle timeout, std::int64_t began_ns) {
    const double rest = nb::cast<double>(nb::float_(timeout)) - static_cast<double>(monotonic_ns() - began_ns) * 1e-9;
    return nb::float_(rest > 0 ? rest : 0.0);
  }
};

// For _signal.sigwait, which does not tell who has sent a signal: where one may be a tick, sigwaitinfo waits.
class NumberWaiter : public Standin {
 public:
  using Standin::Standin;
  nb::object call(const nb::args& args, const nb::kwargs& kwargs) {
    if (args.size() != 1 || kwargs.size() != 0) return call_original(args, kwargs);
    const nb::list awaited = list_of(args[0]);
    for (const nb::handle signal : awaited)
      if (is_tick_signal(signal)) return nb::module_::import_("_signal").attr("sigwaitinfo")(awaited).attr("si_signo");
    return call_original(nb::make_tuple(awaited), kwargs);
  }
};

// For _signal.pause, which ends with the first signal: while it waits, ticks that would end it are blocked.
class PauseCaller : public Standin {
 public:
  using Standin::Standin;
  nb::object call(const nb::args& args, const nb::kwargs& kwargs) {
    const int tick = capture::interrupting_tick_signal();
    if (tick == 0 || args.size() != 0 || kwargs.size() != 0) return call_original(args, kwargs);
    sigset_t blocked;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    ::sigaddset(&blocked, tick);
    Py_BEGIN_ALLOW_THREADS;
    (void)::sigsuspend(&blocked);
    Py_END_ALLOW_THREADS;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    return nb::none();
  }
};

}  // namespace

void bind_signals(nb::module_& module) {
  bind_standin<SignalSetter>(module, "SignalSetter",
                             "Sets what signals do, but ticks and those that end the recording.");
  bind_standin<SignalWaiter>(module, "SignalWaiter", "Waits for signals that are no ticks.");
  bind_standin<NumberWaiter>(module, "NumberWaiter", "Waits for the numbers of signals that are no ticks.");
  bind_standin<PauseCaller>(module, "PauseCaller", "Waits for a signal that is no tick.");
}

}  // namespace plimsoll::python
