#include "remote/session.h"

#include <fcntl.h>
#include <time.h>

#include <algorithm>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "base/unique_fd.h"

namespace plimsoll::remote {
namespace {

using capture::SampleSink;

constexpr std::int64_t kThreadsInterval = 50'000'000;
constexpr std::int64_t kFlushInterval = 1'000'000'000;
// The kernel adds to the clock of a thread that runs at least so often (CONFIG_HZ is at least 100).
constexpr std::int64_t kSchedulerTick = 10'000'000;

// Knows whether a process still runs the program that it ran at first: its memory is gone when it ends or calls exec.
class Life {
 public:
  explicit Life(const Target& target)
      : runtime_(target.runtime),
        memory_(
            ::open(("/proc/" + std::to_string(static_cast<int>(target.pid)) + "/mem").c_str(), O_RDONLY | O_CLOEXEC)) {}
  [[nodiscard]] bool goes_on() const {
    char byte = 0;
    return ::pread(memory_.get(), &byte, 1, static_cast<off_t>(raw(runtime_))) == 1;
  }

 private:
  Address runtime_;
  UniqueFd memory_;
};

// When to look: so many times a second, at instants that no periodic work of the program can keep step with. Each is
// moved by up to a quarter of the period, and the next one not, so that the rate is what was asked.
class Ticks {
 public:
  explicit Ticks(double rate_hz)
      : period_ns_(static_cast<std::int64_t>(1e9 / rate_hz)), base_ns_(monotonic_ns()), random_(os::random_seed()) {}

  std::int64_t next() {
    base_ns_ += period_ns_;
    const std::int64_t now_ns = monotonic_ns();
    if (now_ns > base_ns_ + period_ns_) {
      const std::int64_t late = (now_ns - base_ns_) / period_ns_;
      late_ += static_cast<std::uint64_t>(late);
      base_ns_ += late * period_ns_;
    }
    const auto range = static_cast<std::uint64_t>(period_ns_ / 2 + 1);
    return base_ns_ + static_cast<std::int64_t>(next_random(random_) % range) - period_ns_ / 4;
  }
  [[nodiscard]] std::uint64_t late() const { return late_; }

 private:
  const std::int64_t period_ns_;
  std::int64_t base_ns_;
  std::uint64_t late_ = 0;
  std::uint64_t random_;
};

class Session {
 public:
  Session(const Target& target, const SessionSettings& settings, SampleSink& sink, const WaitUntil& wait_until)
      : settings_(settings),
        sink_(sink),
        wait_until_(wait_until),
        life_(target),
        sampler_(target, settings.sampler, sink) {
    if (::clock_getcpuclockid(static_cast<pid_t>(target.pid), &process_clock_) != 0) process_clock_ = -1;
  }

  Result<SessionResult> run() {
    start_cpu_ns_ = last_cpu_ns_ = clock_ns(process_clock_);
    Ticks ticks(settings_.rate_hz);
    const std::int64_t end_ns = settings_.duration_ns > 0 ? monotonic_ns() + settings_.duration_ns : INT64_MAX;
    while (true) {
      const std::int64_t next_ns = ticks.next();
      if (next_ns >= end_ns) {
        (void)wait_until_(end_ns);
        break;
      }
      if (!wait_until_(next_ns)) break;
      PLIMSOLL_TRY(housekeeping(monotonic_ns()));
      if (result_.ending == Ending::kProcessEnded) break;
      sampler_.look();
      ++result_.looks;
    }
    settle();
    PLIMSOLL_TRY(flush(SampleSink::Ending::kComplete));
    result_.late = ticks.late();
    for (const capture::DropTotal& drop : sampler_.drops()) result_.unproven += drop.count;
    return result_;
  }

 private:
  Status housekeeping(std::int64_t now_ns) {
    if (now_ns >= next_threads_ns_ || sampler_.has_new_threads()) {
      if (!life_.goes_on()) result_.ending = Ending::kProcessEnded;
      if (result_.ending == Ending::kProcessEnded) return Ok{};
      sampler_.update_threads();
      read_process_clock();
      next_threads_ns_ = now_ns + kThreadsInterval;
    }
    if (now_ns < next_flush_ns_ && !sink_.is_full()) return Ok{};
    next_flush_ns_ = now_ns + kFlushInterval;
    return flush(SampleSink::Ending::kOpen);
  }

  // What threads that run have used last is not known before the next tick of the scheduler.
  void settle() {
    if (result_.ending != Ending::kProcessEnded) {
      const std::int64_t until_ns = monotonic_ns() + kSchedulerTick;
      const timespec until{until_ns / 1'000'000'000, until_ns % 1'000'000'000};
      ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    }
    sampler_.finish();
  }

  // Often, as a process that has ended has no clock any more.
  void read_process_clock() { last_cpu_ns_ = std::max(last_cpu_ns_, clock_ns(process_clock_)); }

  Status flush(SampleSink::Ending ending) {
    sampler_.report();
    read_process_clock();
    return sink_.flush({monotonic_ns(), last_cpu_ns_ - start_cpu_ns_, sampler_.drops()}, ending);
  }

  const SessionSettings settings_;
  SampleSink& sink_;
  const WaitUntil& wait_until_;
  const Life life_;
  Sampler sampler_;
  SessionResult result_;
  clockid_t process_clock_{};
  std::int64_t start_cpu_ns_ = 0, last_cpu_ns_ = 0;
  std::int64_t next_threads_ns_ = 0, next_flush_ns_ = monotonic_ns() + kFlushInterval;
};

}  // namespace

Status check(const Target& target, const SessionSettings& settings) {
  if (settings.sampler.stand == Stand::kBeside || can_prove_running(target.layout)) return Ok{};
  return Error{
      ErrorKind::kUnsupported,
      "Python " + target.layout.version.text() +
          " keeps its frames apart from each other, so that stacks of a thread that runs cannot be proven from "
          "other CPUs: leave --apart out, or record it from inside (plimsoll run)"};
}

Result<SessionResult> record(const Target& target, const SessionSettings& settings, SampleSink& sink,
                             const WaitUntil& wait_until) {
  PLIMSOLL_TRY(check(target, settings));
  return Session(target, settings, sink, wait_until).run();
}

}  // namespace plimsoll::remote
