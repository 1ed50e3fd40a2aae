// os/signal_handler.h: handlers that are told nothing but the signal, as the process has them. Async-signal-safe.
#pragma once

#include <csignal>

namespace plimsoll::os {

// SIG_DFL and SIG_IGN are such handlers, too.
using SignalHandler = void (*)(int);

inline bool has_handler(int signal, SignalHandler handler) noexcept {
  struct sigaction current {};
  return ::sigaction(signal, nullptr, &current) == 0 && (current.sa_flags & SA_SIGINFO) == 0 &&
         current.sa_handler == handler;
}

inline void set_handler(int signal, SignalHandler handler, int flags = 0) noexcept {
  struct sigaction action {};  // whose mask is empty
  action.sa_handler = handler;
  action.sa_flags = flags;
  ::sigaction(signal, &action, nullptr);
}

// For a handler: what happens without it. The signal is blocked there, and taken on the way out.
inline void take_default_action(int signal) noexcept {
  set_handler(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace plimsoll::os
