// capture/tick_signals.h: how ticks come in. The process's signal handlers of the signal engine, and who they feed.
//
// Timers send a real-time signal that nobody uses. Perf events come as traps where the kernel has them (Linux 5.13; as
// described here from 6.1): SIGTRAP, raised on the thread's way back from the kernel. A signal that is pending ends a
// system call that is about to wait, with EINTR, which C code may not expect; a trap lets it wait, and comes after it.
// Measured: 96 of 40,000 short waits under a 5 kHz tick ended with EINTR by signal, none by trap.
#pragma once

#include "base/result.h"
#include "base/signals_blocked.h"

namespace plimsoll::capture {

class CpuSampler;

// The signals of the two kinds of ticks.
struct TickSignals {
  int timer = 0;
  int perf = 0;  // SIGTRAP for traps; else the same as `timer`
};

// Installs the handlers; the same ones for all sessions of a process. They stay: a tick that is still pending when a
// session ends must not meet the default action. Traps are used if the program has no handler for SIGTRAP. Thread-safe
// with respect to ticks, not to itself.
Result<TickSignals> install_tick_handlers();

// Whether SIGTRAP still has our handler: C code of the program's may have installed its own since.
bool traps_are_ours();

// Whether ticks come by that signal.
bool is_tick_signal(int signal);

// The signal whose ticks end calls that wait; 0 if the program handles it, too, and may wait for it.
int interrupting_tick_signal();

// After the program has set what a signal of ours does: that is done with those that others send, and ticks are ours
// again. (A real-time signal of others that the program does not handle does nothing.) Not while another thread sets
// it.
void put_tick_handler_back(int signal);

// While it lives, ticks wait that come to the calling thread.
SignalsBlocked ticks_blocked() noexcept;

// Ticks that wait for the calling thread, as it blocks their signals, are gone. One of another program's that it
// becomes would let them in, and end. Signals that others have sent go on waiting.
void take_blocked_ticks() noexcept;

// Whom handlers feed from now on; nobody if null.
void set_active_sampler(CpuSampler* sampler);

// Returns when every handler that was running has ended. A handler takes microseconds; only a preempted one is waited
// for. Callers make sure beforehand that the handlers that begin meanwhile do nothing.
void wait_for_handlers();

// Whether none is running at this instant: one that begins later sees what was stored before the call.
bool no_handler_runs();

// Counts as a running handler as long as it lives: so what is loaded is not forgotten meanwhile. Async-signal-safe. For
// a few microseconds; not while one waits for something.
class RunningHandler {
 public:
  RunningHandler() noexcept;
  RunningHandler(const RunningHandler&) = delete;
  RunningHandler& operator=(const RunningHandler&) = delete;
  ~RunningHandler();
};

// In the child of a fork: handlers that were running on other threads do not exist here.
void forget_handlers();

}  // namespace plimsoll::capture
