#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "os/stopped_process.h"

namespace plimsoll::os {
namespace {

constexpr std::int64_t kPatience = 5'000'000'000;
constexpr std::int64_t kStep = 20'000;

// A thread that ends is refused like one that may not be traced.
bool is_ending(Pid pid, Tid tid) {
  const std::string status = task_status(pid, tid);
  constexpr std::string_view kState = "\nState:\t";
  const std::size_t at = status.find(kState);
  return at == std::string::npos || status[at + kState.size()] == 'Z' || status[at + kState.size()] == 'X';
}

std::string name_of(Pid pid) { return "process " + std::to_string(static_cast<int>(pid)); }

}  // namespace

Result<StoppedProcess> StoppedProcess::stop(Pid pid) {
  if (static_cast<pid_t>(pid) == ::getpid())
    return Error{ErrorKind::kUsage, "a process cannot stop itself: take a snapshot with plimsoll.heap.snapshot()"};
  StoppedProcess stopped;
  stopped.pauses_blocked_ = std::make_unique<SignalsBlocked>(kPauses);
  // A thread may start another before it stops itself: until there is none that is new.
  for (;;) {
    const int added = stopped.seize_all(pid);
    if (added < 0) {
      const int failed = errno;
      if (failed == EPERM)
        return Error{ErrorKind::kPermission, name_of(pid) +
                                                 " cannot be stopped: it is being traced already (by a "
                                                 "debugger or strace), or you may not trace it"};
      return system_error("cannot stop " + name_of(pid), failed);
    }
    if (added == 0) break;
    if (!stopped.await_all())
      return Error{ErrorKind::kSystem, name_of(pid) +
                                           " does not stop: one of its threads is in a wait of the kernel "
                                           "that nothing ends (state D)"};
  }
  if (stopped.threads_.empty()) return Error{ErrorKind::kBadInput, name_of(pid) + " has ended"};
  return stopped;
}

int StoppedProcess::seize_all(Pid pid) {
  const std::size_t known = threads_.size();
  for (const Task& task : tasks_of(pid)) {
    const auto tid = static_cast<pid_t>(task.tid);
    const bool is_traced = std::any_of(threads_.begin(), threads_.end(), [&](const Thread& t) { return t.tid == tid; });
    if (is_traced || task.state == 'Z' || task.state == 'X') continue;
    if (::ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) != 0) {
      const int failed = errno;
      if (failed == ESRCH || (failed == EPERM && is_ending(pid, task.tid))) continue;
      errno = failed;
      return -1;
    }
    threads_.push_back({tid});
  }
  // All at once, so that little time lies between them.
  for (std::size_t i = known; i < threads_.size(); ++i) ::ptrace(PTRACE_INTERRUPT, threads_[i].tid, nullptr, nullptr);
  return static_cast<int>(threads_.size() - known);
}

// Whether it stands still, or has ended, which is as good: then its tid is 0.
bool StoppedProcess::has_stopped(Thread& thread) {
  int status = 0;
  const pid_t told = ::waitpid(thread.tid, &status, __WALL | WNOHANG);
  if (told == 0 || (told < 0 && errno == EINTR)) return false;
  if (told < 0 || !WIFSTOPPED(status)) {
    thread.tid = 0;
    return true;
  }
  // It stops for a signal if one was due; the signal waits until it goes on.
  if (status >> 16 != PTRACE_EVENT_STOP) thread.signal = WSTOPSIG(status);
  thread.is_stopped = true;
  return true;
}

bool StoppedProcess::await_all() {
  const std::int64_t end_ns = monotonic_ns() + kPatience;
  for (Thread& thread : threads_) {
    while (!thread.is_stopped && !has_stopped(thread)) {
      if (monotonic_ns() >= end_ns) return false;
      const timespec step = timespec_of(kStep);
      ::clock_nanosleep(CLOCK_MONOTONIC, 0, &step, nullptr);
    }
  }
  std::erase_if(threads_, [](const Thread& thread) { return thread.tid == 0; });
  return true;
}

void StoppedProcess::resume() {
  for (const Thread& thread : threads_) {
    const auto signal = static_cast<std::uintptr_t>(thread.signal);
    ::ptrace(PTRACE_DETACH, thread.tid, nullptr, signal);
  }
  threads_.clear();
  pauses_blocked_.reset();
}

}  // namespace plimsoll::os
