// os/ended_calls_linux.h: system calls that the kernel ends with EINTR, where others begin again by themselves, and
// that can begin anew, as they have done nothing then.
#pragma once

#include <sys/syscall.h>

namespace plimsoll::os {

#if defined(__x86_64__)  // elsewhere a call that has ended does not tell what it was

// Those that even a stop of the thread ends so, without a handler. `fifth` is their fifth argument. Not those that
// change the signal mask while they wait: a signal that comes by that must end them. Async-signal-safe.
inline bool is_undone_by_a_stop(long number, unsigned long fifth) noexcept {
  switch (number) {
    case SYS_epoll_wait:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_rt_sigtimedwait:
    case SYS_io_getevents:
    // With a limit on the time of the socket.
    case SYS_read:
    case SYS_readv:
    case SYS_write:
    case SYS_writev:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_accept:
    case SYS_accept4: return true;
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2: return fifth == 0;  // no mask
    default: return false;
  }
}

#endif

}  // namespace plimsoll::os
