#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>

#include "base/clock.h"
#include "os/signal_handler.h"
#include "os/termination.h"

namespace plimsoll::os {
namespace {

constexpr int kSignals[] = {SIGTERM, SIGHUP};
// The thread that was interrupted may hold what whoever is to speak waits for, as malloc's lock: it goes on after the
// first, and whoever speaks ends the process, or after the second nobody.
constexpr std::int64_t kLongestWait = 500'000'000;
constexpr timespec kLongestDelay = {2, 0};

std::atomic<Doorbell*> watcher{nullptr};
// The signal that the process is about to end by, while a thread waits in its handler; its negative where none does.
std::atomic<int> ending{0};
std::atomic<int> running_handlers{0};
Doorbell answer;

// Sends the signal again. Async-signal-safe, which timer_create of the C library need not be.
bool send_later(int signal) noexcept {
  struct sigevent event {};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = signal;
  int timer = 0;
  const itimerspec when{{}, kLongestDelay};
  return ::syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer) == 0 &&
         ::syscall(SYS_timer_settime, timer, 0, &when, nullptr) == 0;
}

// Whether the thread must go on, so that somebody can speak: not if all was said, or if there has been time enough.
bool must_go_on(Doorbell& bell, int signal) noexcept {
  int before = 0;
  if (!ending.compare_exchange_strong(before, signal, std::memory_order_acq_rel) && before < 0) return false;
  bell.ring();
  const std::int64_t deadline = monotonic_ns() + kLongestWait;
  for (std::int64_t now = monotonic_ns(); is_ending() && now < deadline; now = monotonic_ns())
    answer.wait_for(deadline - now);
  int waiting = ending.load(std::memory_order_acquire);
  if (waiting > 0 && ending.compare_exchange_strong(waiting, -waiting, std::memory_order_acq_rel))
    return send_later(waiting);
  return waiting < 0;
}

void on_termination(int signal) {
  const int error = errno;
  running_handlers.fetch_add(1, std::memory_order_seq_cst);
  Doorbell* const bell = watcher.load(std::memory_order_seq_cst);
  const bool goes_on = bell != nullptr && must_go_on(*bell, signal);
  running_handlers.fetch_sub(1, std::memory_order_acq_rel);
  if (!goes_on) take_default_action(signal);
  errno = error;
}

// Outside of a handler.
void end_by(int signal) noexcept {
  take_default_action(signal);
  sigset_t blocked;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &blocked, nullptr);
}

void handle_what_would_end_it() noexcept {
  for (const int signal : kSignals)
    if (has_handler(signal, SIG_DFL)) set_handler(signal, on_termination, SA_RESTART | SA_ONSTACK);
}

}  // namespace

void watch_termination(Doorbell& bell) {
  ending.store(0);
  watcher.store(&bell);
  handle_what_would_end_it();
}

void look_at_termination_again() noexcept {
  // (Whoever stops to watch at the same moment may leave our handler: with nobody to ring for, it does what SIG_DFL
  // does.)
  if (watcher.load(std::memory_order_seq_cst) != nullptr) handle_what_would_end_it();
}

bool is_ending() noexcept { return ending.load(std::memory_order_acquire) != 0; }

void end_now() noexcept {
  const int signal = ending.exchange(0, std::memory_order_acq_rel);
  answer.ring();
  if (signal < 0) end_by(-signal);
}

void stop_watching_termination() {
  watcher.store(nullptr, std::memory_order_seq_cst);
  end_now();
  while (running_handlers.load(std::memory_order_seq_cst) != 0) ::sched_yield();
  for (const int signal : kSignals)
    if (has_handler(signal, on_termination)) set_handler(signal, SIG_DFL);
}

SignalsBlocked termination_blocked() noexcept { return SignalsBlocked(kSignals); }

void forget_termination() noexcept {
  watcher.store(nullptr);
  ending.store(0);
  running_handlers.store(0);
}

}  // namespace plimsoll::os
