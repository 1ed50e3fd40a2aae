#include "capture/reader_thread.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/random.h"
#include "memory/local.h"
#include "os/own_thread.h"

namespace plimsoll::capture {
namespace {

// Where there was nothing to see for so many looks in a row, they come so many times less often. (Not sooner: a thread
// that waits for a CPU of a crowded machine stands still between its turns, and these would begin unseen.)
constexpr int kEmptyLooks = 64;
constexpr double kIdle = 8;

std::int64_t period_of(double rate_hz) { return static_cast<std::int64_t>(1e9 / rate_hz); }

// The lock, if it can be had within that time. (ThreadSanitizer does not know how a std::timed_mutex waits by the
// monotonic clock, and what is done under one is a race to it.)
std::unique_lock<std::mutex> lock_within(std::mutex& mutex, std::int64_t patience_ns) {
  constexpr std::chrono::microseconds kPause{20};
  std::unique_lock lock(mutex, std::try_to_lock);
  for (const std::int64_t end_ns = monotonic_ns() + patience_ns; !lock.owns_lock() && monotonic_ns() < end_ns;) {
    std::this_thread::sleep_for(kPause);
    (void)lock.try_lock();
  }
  return lock;
}

}  // namespace

ReaderThread::ReaderThread(CpuSampler& sampler) : sampler_(sampler), random_(os::random_seed()) {}

Result<std::unique_ptr<ReaderThread>> ReaderThread::start(ReaderDuties duties, const Interpreter& interpreter,
                                                          CpuSampler& sampler, SampleRing& ring, SeenFilter& seen,
                                                          std::size_t max_depth) {
  std::unique_ptr<ReaderThread> reader(new ReaderThread(sampler));
  if (duties.waits) reader->waits_.emplace(interpreter, sampler, ring, seen, max_depth);
  if (duties.running) reader->running_.emplace(interpreter, sampler, ring, seen, max_depth);
  PLIMSOLL_TRY(reader->start_thread());
  return reader;
}

Status ReaderThread::start_thread() {
  tid_.store(0);
  const int failed = os::start_own_thread<&ReaderThread::run>(thread_, "plimsoll-reader", this);
  if (failed != 0) return system_error("cannot start the thread that looks at the others", failed);
  has_thread_ = true;
  tid_.wait(0);
  return Ok{};
}

void ReaderThread::end_thread(Asked asked) {
  {
    const std::lock_guard guard(mutex_);
    asked_ = asked;
  }
  wake_.notify_all();
  if (std::exchange(has_thread_, false)) ::pthread_join(thread_, nullptr);
}

void ReaderThread::stop() {
  if (asked_ == Asked::kStop) return;
  const bool has_rested = !has_thread_;
  end_thread(Asked::kStop);
  if (has_rested && waits_) waits_->finish();
}

void ReaderThread::rest() { end_thread(Asked::kRest); }

Status ReaderThread::wake() {
  asked_ = Asked::kLook;
  return start_thread();
}

void ReaderThread::abandon() {
  if (waits_) waits_->abandon();
}

void ReaderThread::run() {
  os::wake_on_time();
  tid_.store(static_cast<std::int32_t>(os::current_tid()));
  tid_.notify_all();
  std::int64_t due_ns = monotonic_ns();
  int empty_looks = 0;
  std::unique_lock lock(mutex_);
  while (asked_ == Asked::kLook) {
    lock.unlock();
    const std::int64_t began_ns = monotonic_ns();
    empty_looks = look_at_all() ? 0 : std::min(empty_looks + 1, kEmptyLooks);
    cpu_ns_.store(past_cpu_ns_ + thread_cpu_ns(), std::memory_order_relaxed);
    const std::int64_t ended_ns = monotonic_ns();
    due_ns = next_look(sampler_.rate_hz() / (empty_looks < kEmptyLooks ? 1 : kIdle), due_ns, began_ns, ended_ns);
    lock.lock();
    due_ns = wait_until(due_ns, lock);
  }
  const bool is_over = asked_ == Asked::kStop;
  lock.unlock();
  if (is_over) {
    look_at_all();
    if (waits_) waits_->finish();
  }
  past_cpu_ns_ += thread_cpu_ns();
  cpu_ns_.store(past_cpu_ns_, std::memory_order_relaxed);
}

void ReaderThread::go_on() {
  {
    const std::lock_guard guard(mutex_);
    has_resumed_ = true;
  }
  wake_.notify_all();
}

std::int64_t ReaderThread::wait_until(std::int64_t due_ns, std::unique_lock<std::mutex>& lock) {
  for (std::int64_t now_ns = monotonic_ns(); asked_ == Asked::kLook && now_ns < due_ns; now_ns = monotonic_ns()) {
    wake_.wait_for(lock, std::chrono::nanoseconds(due_ns - now_ns),
                   [this] { return asked_ != Asked::kLook || has_resumed_; });
    // At any moment of a period, as if there had been no pause.
    if (std::exchange(has_resumed_, false))
      due_ns = std::min(due_ns, monotonic_ns() + within(period_of(sampler_.rate_hz())));
  }
  return due_ns;
}

std::int64_t ReaderThread::within(std::int64_t period_ns) {
  return static_cast<std::int64_t>(next_random(random_) % static_cast<std::uint64_t>(period_ns));
}

std::int64_t ReaderThread::next_look(double rate_hz, std::int64_t due_ns, std::int64_t began_ns,
                                     std::int64_t ended_ns) {
  // Looks come at random within half a period to one and a half, so that periodic work cannot hide between them. One
  // that came late does not delay those after it, but more than a few are not made up for; and looks never take more
  // than a quarter of this thread's time.
  constexpr std::int64_t kMostLate = 4;  // periods
  const std::int64_t period = period_of(rate_hz);
  const std::int64_t next = std::max(due_ns + period / 2 + within(period), ended_ns - kMostLate * period);
  return std::max(next, ended_ns + 3 * (ended_ns - began_ns));
}

bool ReaderThread::look_at_all() {
  const std::lock_guard looking(look_mutex_);
  return look(Look::kAtAll);
}

void ReaderThread::look_at_waits() {
  // Longer than a look takes; but who holds the reader across a fork may need the caller's GIL.
  constexpr std::int64_t kPatience = 50'000'000;
  if (!waits_) return;
  const std::unique_lock<std::mutex> looking = lock_within(look_mutex_, kPatience);
  if (looking.owns_lock()) look(Look::kAtWaits);
}

bool ReaderThread::look(Look look) {
  if (sampler_.is_paused()) {
    if (waits_) waits_->pause();
    return false;
  }
  // What others keep in memory is often gone when it is read here. So a handler that the program has put over ours
  // since the last look, faulthandler's for example, must not be met: two system calls of this thread's own time.
  if (!memory::FaultGuard::ensure_installed().ok()) return false;
  bool is_busy = waits_.has_value();
  const bool is_at_all = look == Look::kAtAll;
  const auto look_at = [&](ThreadSlot& slot) {
    const bool may_run = !waits_ || waits_->look_at(slot);
    if (may_run && running_ && is_at_all) is_busy = running_->look_at(slot) || is_busy;
  };
  try {
    sampler_.for_each_thread(look_at);
    if (waits_) waits_->end_round();
  } catch (const std::bad_alloc&) {
    // For a thread that is new: the next look may find memory for it.
  }
  return is_busy;
}

}  // namespace plimsoll::capture
