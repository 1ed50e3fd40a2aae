// capture/drain_gate.h: the lock that the drain thread works under, and what wakes it and those who wait for it.
//
// Around a fork, the thread that forks keeps the drain thread out, so that the child finds nothing half done. Code of
// the program runs meanwhile: other fork handlers, which allocate. If the ring is full then, the thread would wait for
// room that it keeps from being made; so it opens the gate for as long as it waits.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "os/doorbell.h"

namespace plimsoll::capture {

// For any thread.
class DrainGate {
 public:
  // Keeps the drain thread out until let_in(), by the same thread; waits until it has come to the end of what it does.
  void keep_out() {
    work.lock();
    keeper_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  // Nothing, if the calling thread does not keep it out.
  void let_in() {
    if (!is_kept_by_caller()) return;
    keeper_.store({}, std::memory_order_relaxed);
    work.unlock();
  }

  [[nodiscard]] bool is_kept_by_caller() const {
    return keeper_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }

  // While it lives, nobody is kept out by the calling thread.
  class Ajar {
   public:
    explicit Ajar(DrainGate& gate) : gate_(gate), was_shut_(gate.is_kept_by_caller()) { gate_.let_in(); }
    Ajar(const Ajar&) = delete;
    Ajar& operator=(const Ajar&) = delete;
    ~Ajar() {
      // In the middle of an allocation the caller may hold what the drain thread waits for, as the dynamic linker's
      // lock: it then goes on with the gate open, which is no worse for it than the fork of a C library.
      if (was_shut_ && gate_.work.try_lock_for(std::chrono::seconds(1)))
        gate_.keeper_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    }

   private:
    DrainGate& gate_;
    const bool was_shut_;
  };

  std::timed_mutex work;         // held by the drain thread while it works
  os::Doorbell bell;             // ends its rest
  std::condition_variable done;  // it has worked

 private:
  std::atomic<std::thread::id> keeper_{};
};

}  // namespace plimsoll::capture
