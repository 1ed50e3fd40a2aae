// os/own_thread.h: threads of the profiler in the process of the program.
#pragma once

#include <pthread.h>

#include <csignal>
#include <exception>
#include <functional>
#include <initializer_list>
#include <utility>

#include "base/inside.h"

namespace plimsoll::os {

// Starts a thread that blocks all signals but those of its own faults, so that no signal of the program is ever
// delivered to it. (A blocked fault is no fault that waits: the kernel kills the process, and a guarded load may always
// fault.) `name` is what the kernel calls it, at most 15 bytes. Returns 0 or an errno, as pthread_create.
inline int start_own_thread(pthread_t& thread, const char* name, void* (*body)(void*), void* argument) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) ::sigdelset(&all, fault);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited by the new thread
  const int failed = ::pthread_create(&thread, nullptr, body, argument);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failed == 0) ::pthread_setname_np(thread, name);
  return failed;
}

// For the beginning of such a thread: what it allocates is not the program's.
inline void become_own_thread() { is_inside = true; }

// A thread of ours that runs a member function of an object, which outlives it.
template <auto kRun, typename T>
int start_own_thread(pthread_t& thread, const char* name, T* self) {
  const auto body = [](void* kept) -> void* {
    become_own_thread();
    (static_cast<T*>(kept)->*kRun)();
    return nullptr;
  };
  return start_own_thread(thread, name, body, self);
}

// Such a thread that does one thing.
class OwnThread {
 public:
  OwnThread() = default;
  OwnThread(const OwnThread&) = delete;
  OwnThread& operator=(const OwnThread&) = delete;
  ~OwnThread() { wait(); }

  // False if the system gives no thread; then nothing is done. Once.
  bool start(const char* name, std::function<void()> work) {
    work_ = std::move(work);
    const auto body = [](void* self) -> void* {
      become_own_thread();
      auto* const own = static_cast<OwnThread*>(self);
      try {
        own->work_();
      } catch (...) {  // mostly that there is no memory: the program is not to end for that
        own->error_ = std::current_exception();
      }
      return nullptr;
    };
    is_there_ = start_own_thread(thread_, name, body, this) == 0;
    return is_there_;
  }
  [[nodiscard]] bool is_there() const { return is_there_; }
  // Waits until it is done. What its work threw, if anything, is thrown here.
  void join() {
    wait();
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  void wait() {
    if (std::exchange(is_there_, false)) ::pthread_join(thread_, nullptr);
  }

  std::function<void()> work_;
  std::exception_ptr error_;
  pthread_t thread_{};
  bool is_there_ = false;
};

}  // namespace plimsoll::os
