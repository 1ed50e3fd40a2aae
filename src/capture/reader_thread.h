// capture/reader_thread.h: the reader engine: a thread of ours that looks, at the sampling rate, at all threads of the
// program: at those that wait, at those that run, or at both.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "capture/run_reader.h"
#include "capture/wait_reader.h"

namespace plimsoll::capture {

// What the reader looks at.
struct ReaderDuties {
  bool waits = false;
  bool running = false;
};

// One per session at most. Thread-safe.
class ReaderThread {
 public:
  // Starts the thread; it looks at the sampler's threads, at the sampler's rate, until stop().
  static Result<std::unique_ptr<ReaderThread>> start(ReaderDuties duties, const Interpreter& interpreter,
                                                     CpuSampler& sampler, SampleRing& ring, SeenFilter& seen,
                                                     std::size_t max_depth);
  ReaderThread(const ReaderThread&) = delete;
  ReaderThread& operator=(const ReaderThread&) = delete;
  ~ReaderThread() { stop(); }

  // Ends the thread, after a last look. The sampler must still know its threads. Idempotent.
  void stop();
  // The thread ends, but the reader does not: until wake() nobody looks. Both by one thread.
  void rest();
  Status wake();
  // By whoever pauses or resumes the sampler, before and after: what threads wait in is told to that moment, and counts
  // again from that moment on. The reader's own look may be eight periods away.
  void look_at_waits();
  // By whoever resumes the sampler, after it: the next look comes within a period, and not as far away as they are
  // while there is nothing to see.
  void go_on();
  // Around fork, in the parent: while held, no look is under way.
  void hold() { look_mutex_.lock(); }
  void release() { look_mutex_.unlock(); }
  // In the child of a fork, with the lock held since before: closes descriptors. The thread does not exist here.
  void abandon();
  [[nodiscard]] Tid tid() const { return Tid{tid_.load()}; }
  // CPU time that the thread has used.
  [[nodiscard]] std::int64_t cpu_ns() const { return cpu_ns_.load(std::memory_order_relaxed); }

 private:
  explicit ReaderThread(CpuSampler& sampler);
  Status start_thread();
  // Of the thread: to end for now, or with all that it knows.
  enum class Asked : std::uint8_t { kLook, kRest, kStop };
  void end_thread(Asked asked);
  void run();
  // False if the next look has time: nothing waits, and nothing that a reader can sample runs.
  bool look_at_all();
  // Likewise, for who has look_mutex_.
  enum class Look : std::uint8_t { kAtWaits, kAtAll };
  bool look(Look look);
  // Until then or the end; when that was, as it comes sooner where the sampler is resumed meanwhile.
  std::int64_t wait_until(std::int64_t due_ns, std::unique_lock<std::mutex>& lock);
  // A random part of a period, in nanoseconds.
  std::int64_t within(std::int64_t period_ns);
  // When to look next, given when the last look was due, when it began and when it ended.
  std::int64_t next_look(double rate_hz, std::int64_t due_ns, std::int64_t began_ns, std::int64_t ended_ns);

  CpuSampler& sampler_;
  std::optional<WaitReader> waits_;
  std::optional<RunReader> running_;
  std::uint64_t random_;

  std::atomic<std::int32_t> tid_{0};
  std::atomic<std::int64_t> cpu_ns_{0};
  std::mutex look_mutex_;  // guards waits_ and running_; held while looking
  std::mutex mutex_;       // guards what follows
  std::condition_variable wake_;
  Asked asked_ = Asked::kLook;
  bool has_resumed_ = false;  // since it was asked last
  bool has_thread_ = false;
  std::int64_t past_cpu_ns_ = 0;  // of threads that have ended
  pthread_t thread_{};
};

}  // namespace plimsoll::capture
