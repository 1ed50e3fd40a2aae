// capture/interrupted_call.h: system calls that ticks change the end of, against what the program asked for.
//
// A signal ends a wait that has just begun with EINTR, which C code may not expect, although the kernel begins most
// calls anew that SA_RESTART asks that for: poll, sleep and their like it does not. They can be: they have done nothing
// yet.
//
// The other way round, a call that a signal of the program's own has ended, and a trap has begun anew. A trap that is
// raised while a thread begins to wait is delivered when it wakes up. If that is by a signal, the kernel sees to the
// trap first, finds that it asks for calls to be begun anew (SA_RESTART, without which C code would see EINTR for no
// reason of its own), and only then looks at the other signal, which has asked for nothing of the kind: the call waits
// again when both handlers have run. So a handler of Python's, which runs when the call has ended, does not run: 19 of
// 3000 reads of a pipe were not ended by SIGALRM at 1 kHz, 358 at 10 kHz.
#pragma once

#include <ucontext.h>

namespace plimsoll::capture {

// For the handler of a trap: if `context` goes on with a call that waits, and that had been begun before, lets it end
// with EINTR. A trap alone ends no call, so there was a signal; if that has asked for a new beginning, too, or was none
// but a stop of the process, C code sees EINTR where it would not without us: one in some hundred times, as often as a
// tick meets the beginning of a wait. Does nothing on aarch64, where a call that was begun before looks like one that
// was not. Async-signal-safe.
void end_interrupted_call(ucontext_t& context) noexcept;

// The same for the handler of a tick that is the signal `tick`, and that has others blocked: does that only if one of
// them is pending. (The kernel has seen to the tick alone, and the other has come since.) Async-signal-safe.
void end_call_for_pending(ucontext_t& context, int tick) noexcept;

// Whether `context` goes on behind a call that a signal has ended with EINTR, or with one that it has interrupted and
// that goes on: so the thread waits. Async-signal-safe.
bool has_interrupted_call(const ucontext_t& context) noexcept;

// For the handler of a tick that is the signal `tick`, and that comes a few times in a wait at most: if `context` goes
// on behind a call that the tick has ended with EINTR, begins it anew. Another signal that has come at the same time
// has its handler run before, so that `context` is the beginning of that one, and the call ends for it; and for one
// that is pending it does, too. So the handler must have others blocked: one that came in the middle of it would end
// nothing. What a call is to do once more is wait for what is left of the time it was given, where the kernel tells
// that, or where it is an instant; poll, epoll_wait and a sleep that is not to tell begin with all of it. Which call it
// was is seen from the code (see call_numbers.h); if it is not known, and on aarch64, nothing is done. (A signal that
// comes in the last microsecond, when none was pending and the call has not begun again, does not end it.)
// Async-signal-safe.
void begin_call_anew(ucontext_t& context, int tick) noexcept;

}  // namespace plimsoll::capture
