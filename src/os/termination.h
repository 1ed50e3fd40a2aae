// os/termination.h: time for last words, when a signal from outside ends the process.
//
// SIGTERM and SIGHUP end a process at once, if the program does not handle them: so end the workers of a
// multiprocessing.Pool. What is not in a file yet is lost then. While somebody watches, such a signal rings a bell, and
// the process ends when that one has had its say, or some moments later: by the signal, as it would have. Until then
// the thread that took the signal stands still; unless it holds what whoever is to speak waits for: then it goes on.
#pragma once

#include "base/signals_blocked.h"
#include "os/doorbell.h"

namespace plimsoll::os {

// From now on `bell` is rung when the process is about to end. Signals that the program handles or ignores are left
// alone, and one for which it installs a handler later has that alone. One may watch at a time. For any thread.
void watch_termination(Doorbell& bell);
// After the program has set what a signal does: one that it gave up to handle ends the process again, and then so that
// the bell is rung. Not while another thread sets it. Nothing if nobody watches.
void look_at_termination_again() noexcept;
// Whether the process is about to end, and waits for end_now(). For any thread.
bool is_ending() noexcept;
// Nothing more is to be said: if the process is about to end, it does. For any thread.
void end_now() noexcept;
// Nobody watches any more; signals end the process as they would without us. Returns when no thread waits any more.
void stop_watching_termination();
// While it lives, those signals wait that come to the calling thread.
SignalsBlocked termination_blocked() noexcept;
// In the child of a fork: whoever watches does not exist here.
void forget_termination() noexcept;

}  // namespace plimsoll::os
