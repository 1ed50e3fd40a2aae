// os/stopped_process.h: a process that stands still while it is looked at.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/signals_blocked.h"
#include "os/process.h"

namespace plimsoll::os {

// All threads of another process, stopped by ptrace: no signal is sent, what the process was told before it was
// stopped it is told after, and if this process ends the kernel lets it go on. Who waits in a system call goes on
// waiting, but for the few calls that a debugger ends, too (epoll_wait, sigwaitinfo, semop: EINTR, see signal(7)).
// For use by one thread: that which stopped it has to let it go on. Movable, not copyable.
class StoppedProcess {
 public:
  // Waits until all threads stand still. Errors, after which none does: kPermission, kBadInput if it has ended,
  // kSystem if a thread could not be stopped for some seconds (it is inside the kernel, in a wait that nothing ends).
  static Result<StoppedProcess> stop(Pid pid);

  StoppedProcess(StoppedProcess&& other) noexcept
      : pauses_blocked_(std::move(other.pauses_blocked_)), threads_(std::move(other.threads_)) {
    other.threads_.clear();
  }
  StoppedProcess& operator=(StoppedProcess&&) = delete;
  StoppedProcess(const StoppedProcess&) = delete;
  StoppedProcess& operator=(const StoppedProcess&) = delete;
  ~StoppedProcess() { resume(); }

  void resume();
  [[nodiscard]] std::size_t thread_count() const { return threads_.size(); }

 private:
  // A thread that we trace.
  struct Thread {
    pid_t tid = 0;
    bool is_stopped = false;
    int signal = 0;  // that it was about to be told; 0: none
  };

  StoppedProcess() = default;
  // Traces those that are not yet. How many were new; -1 with errno if it may not be.
  int seize_all(Pid pid);
  // False if some thread did not stop in time.
  bool await_all();
  static bool has_stopped(Thread& thread);

  std::unique_ptr<SignalsBlocked> pauses_blocked_;  // of whoever made it, until resume()
  std::vector<Thread> threads_;
};

}  // namespace plimsoll::os
