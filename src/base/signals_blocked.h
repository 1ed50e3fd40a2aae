// base/signals_blocked.h: signals that wait while something is done.
#pragma once

#include <csignal>
#include <span>

namespace plimsoll {

// While it lives, these signals wait that come to the thread that makes it, and unmakes it. Async-signal-safe.
class SignalsBlocked {
 public:
  explicit SignalsBlocked(std::span<const int> signals) noexcept {
    sigset_t set;
    ::sigemptyset(&set);
    for (const int signal : signals) ::sigaddset(&set, signal);
    ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  }
  explicit SignalsBlocked(int signal) noexcept : SignalsBlocked(std::span(&signal, 1)) {}
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  // Whether the thread had blocked this one itself.
  [[nodiscard]] bool were_blocked(int signal) const noexcept { return ::sigismember(&before_, signal) == 1; }

 private:
  sigset_t before_{};
};

// What a terminal or a shell stops a program by: who holds others still blocks them until these go on, as they would
// stand still, too, until somebody says fg.
inline constexpr int kPauses[] = {SIGTSTP, SIGTTIN, SIGTTOU};

}  // namespace plimsoll
