#include <sched.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include "base/clock.h"
#include "os/signal_handler.h"
#include "os/termination.h"

namespace plimsoll::os {
namespace {

constexpr int kSignals[] = {SIGTERM, SIGHUP};
// The thread that was interrupted may hold what whoever is to speak waits for; a disk may take seconds to take that in.
constexpr std::int64_t kLongestWait = 3'000'000'000;

std::atomic<Doorbell*> watcher{nullptr};
std::atomic<bool> is_asked{false};
std::atomic<int> running_handlers{0};
Doorbell answer;

void on_termination(int signal) {
  const int error = errno;
  running_handlers.fetch_add(1, std::memory_order_seq_cst);
  if (Doorbell* const bell = watcher.load(std::memory_order_seq_cst)) {
    is_asked.store(true, std::memory_order_release);
    bell->ring();
    const std::int64_t deadline = monotonic_ns() + kLongestWait;
    for (std::int64_t now = monotonic_ns(); is_ending() && now < deadline; now = monotonic_ns())
      answer.wait_for(deadline - now);
  }
  running_handlers.fetch_sub(1, std::memory_order_acq_rel);
  take_default_action(signal);
  errno = error;
}

void handle_what_would_end_it() noexcept {
  for (const int signal : kSignals)
    if (has_handler(signal, SIG_DFL)) set_handler(signal, on_termination, SA_RESTART | SA_ONSTACK);
}

}  // namespace

void watch_termination(Doorbell& bell) {
  is_asked.store(false);
  watcher.store(&bell);
  handle_what_would_end_it();
}

void look_at_termination_again() noexcept {
  // (Whoever stops to watch at the same moment may leave our handler: with nobody to ring for, it does what SIG_DFL
  // does.)
  if (watcher.load(std::memory_order_seq_cst) != nullptr) handle_what_would_end_it();
}

bool is_ending() noexcept { return is_asked.load(std::memory_order_acquire); }

void end_now() noexcept {
  is_asked.store(false, std::memory_order_release);
  answer.ring();
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
  is_asked.store(false);
  running_handlers.store(0);
}

}  // namespace plimsoll::os
