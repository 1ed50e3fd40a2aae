#include "remote/session.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "remote/descendants.h"
#include "remote/recorded_process.h"

namespace plimsoll::remote {
namespace {

using capture::SampleSink;
using Drops = std::array<capture::DropTotal, capture::kDropReasonCount>;

constexpr std::int64_t kThreadsInterval = 50'000'000;
constexpr std::int64_t kFlushInterval = 1'000'000'000;
// The kernel adds to the clock of a thread that runs at least so often (CONFIG_HZ is at least 100).
constexpr std::int64_t kSchedulerTick = 10'000'000;

// When to look: so many times a second, at instants that no periodic work of the program can keep step with. Each is
// moved by up to a quarter of the period, and the next one not, so that the rate is what was asked.
class Ticks {
 public:
  explicit Ticks(double rate_hz)
      : period_ns_(static_cast<std::int64_t>(1e9 / rate_hz)), base_ns_(monotonic_ns()), random_(os::random_seed()) {}

  // `rest_ns`: until then there is to be no look.
  std::int64_t next(std::int64_t rest_ns) {
    base_ns_ += period_ns_;
    leave_out(rest_ns, spared_);
    leave_out(monotonic_ns(), late_);
    const auto range = static_cast<std::uint64_t>(period_ns_ / 2 + 1);
    return base_ns_ + static_cast<std::int64_t>(next_random(random_) % range) - period_ns_ / 4;
  }
  [[nodiscard]] std::uint64_t late() const { return late_; }
  [[nodiscard]] std::uint64_t spared() const { return spared_; }

 private:
  void leave_out(std::int64_t until_ns, std::uint64_t& count) {
    if (until_ns <= base_ns_ + period_ns_) return;
    const std::int64_t missed = (until_ns - base_ns_) / period_ns_;
    count += static_cast<std::uint64_t>(missed);
    base_ns_ += missed * period_ns_;
  }

  const std::int64_t period_ns_;
  std::int64_t base_ns_;
  std::uint64_t late_ = 0, spared_ = 0;
  std::uint64_t random_;
};

bool stops(const SessionSettings& settings) {
  return settings.stand == Stand::kStop || settings.sampler.native == NativeFrames::kYes;
}

bool is_traced(os::Pid pid) {
  const std::string status = os::task_status(pid, Tid{static_cast<std::int32_t>(pid)});
  return status.find("\nTracerPid:") != std::string::npos && status.find("\nTracerPid:\t0\n") == std::string::npos;
}

class Session {
 public:
  Session(const Target& target, const SessionSettings& settings, SampleSink& sink, const WaitUntil& wait_until)
      : settings_(settings),
        sink_(sink),
        wait_until_(wait_until),
        probes_(os::raise_descriptor_limit()),
        descendants_(target.pid) {
    if (settings.stand != Stand::kApart) shared_cpu_.emplace();
    if (stops(settings)) stopper_.emplace();
    add(target);
    children_before_ns_ = os::ended_children_cpu_ns(target.pid);
  }

  Result<SessionResult> run() {
    Ticks ticks(settings_.rate_hz);
    const std::int64_t end_ns = settings_.duration_ns > 0 ? monotonic_ns() + settings_.duration_ns : INT64_MAX;
    std::int64_t rest_ns = 0;
    while (true) {
      const std::int64_t next_ns = ticks.next(rest_ns);
      if (next_ns >= end_ns) {
        (void)wait_until_(end_ns);
        break;
      }
      if (!wait_until_(next_ns)) break;
      const std::int64_t used_before_ns = thread_cpu_ns();
      housekeeping(monotonic_ns());
      if (result_.ending == Ending::kProcessEnded) break;
      if (shared_cpu_) shared_cpu_->begin_look();
      if (stopper_) stopper_->let_late_ones_go();
      for (const auto& process : processes_) process->sampler().look();
      ++result_.looks;
      rest_ns = rest_after(thread_cpu_ns() - used_before_ns);
      PLIMSOLL_TRY(flush_if_due());
    }
    settle();
    PLIMSOLL_TRY(flush(SampleSink::Ending::kComplete));
    result_.late = ticks.late();
    result_.spared = ticks.spared();
    result_.samples = numbers_.samples;
    result_.used_ns = used_ns();
    result_.unseen_children_ns = std::max<std::int64_t>(children_ns_ - retired_cpu_ns_, 0);
    const Drops lost = drops();
    for (std::size_t i = 0; i < lost.size(); ++i)
      if (!capture::is_of_native_frames(static_cast<capture::DropReason>(i))) result_.unproven += lost[i].count;
    result_.not_told = lost[static_cast<std::size_t>(capture::DropReason::kNotTold)].count;
    // (What a thread was never met with is no look.)
    result_.unproven -= result_.not_told + lost[static_cast<std::size_t>(capture::DropReason::kThreadEnded)].count;
    if (stopper_) result_.median_stop_ns = stopper_->median_held_ns();
    if (stopper_) result_.longest_stop_ns = stopper_->longest_held_ns();
    return result_;
  }

 private:
  // Until when the program is left alone after a look that took so much CPU time. (By the clock it takes longer on a
  // busy machine; but while we wait for a CPU, we take nothing from the program.)
  [[nodiscard]] std::int64_t rest_after(std::int64_t look_ns) const {
    return monotonic_ns() + static_cast<std::int64_t>(static_cast<double>(look_ns) * (1 / settings_.most_share - 1));
  }

  void add(const Target& target) {
    const Holds holds{probes_, shared_cpu_ ? &*shared_cpu_ : nullptr, stopper_ ? &*stopper_ : nullptr};
    processes_.push_back(std::make_unique<RecordedProcess>(target, settings_.sampler, holds, sink_, numbers_));
    // Now, as what its threads use until the first look is theirs.
    processes_.back()->update(true);
  }

  void housekeeping(std::int64_t now_ns) {
    const bool is_time = now_ns >= next_threads_ns_;
    if (is_time) next_threads_ns_ = now_ns + kThreadsInterval;
    for (const auto& process : processes_) process->update(is_time);
    if (!processes_[0]->goes_on()) {
      result_.ending = Ending::kProcessEnded;
      return;
    }
    for (const auto& process : processes_)
      if (!process->goes_on()) retire(*process);
    std::erase_if(processes_, [](const auto& process) { return !process->goes_on(); });
    if (is_time)
      children_ns_ = std::max(children_ns_, os::ended_children_cpu_ns(processes_[0]->pid()) - children_before_ns_);
    if (is_time && settings_.follows_children) follow(now_ns);
  }

  // No part of a look: what is written, texts of sources above all, takes nothing from the program.
  Status flush_if_due() {
    const std::int64_t now_ns = monotonic_ns();
    if (now_ns < next_flush_ns_ && !sink_.wants_flush()) return Ok{};
    next_flush_ns_ = now_ns + kFlushInterval;
    return flush(SampleSink::Ending::kOpen);
  }

  void follow(std::int64_t now_ns) {
    for (const os::Pid pid : descendants_.candidates(now_ns)) {
      const Result<Target> target = find_target(pid);
      if (!target.ok() || !check(target.value(), settings_).ok()) continue;
      descendants_.is_recorded(pid);
      add(target.value());
    }
  }

  // A process that has ended, or runs another program: what it used and lost counts on.
  void retire(RecordedProcess& process) {
    process.sampler().finish();
    descendants_.has_changed(process.pid(), monotonic_ns());
    retired_cpu_ns_ += process.used_ns();
    add_drops(retired_drops_, process.sampler().drops());
    add_counts(retired_tasks_, process.sampler().task_counts());
  }

  // What threads that run have used last is not known before the next tick of the scheduler.
  void settle() {
    if (result_.ending != Ending::kProcessEnded) os::sleep_until(monotonic_ns() + kSchedulerTick);
    for (const auto& process : processes_) process->sampler().finish();
  }

  [[nodiscard]] Drops drops() const {
    Drops all = retired_drops_;
    for (const auto& process : processes_) add_drops(all, process->sampler().drops());
    return all;
  }

  static void add_drops(Drops& to, const Drops& from) {
    for (std::size_t i = 0; i < to.size(); ++i) {
      to[i].count += from[i].count;
      to[i].cpu_ns += from[i].cpu_ns;
    }
  }

  // CPU time of all that is or was recorded.
  std::int64_t used_ns() {
    std::int64_t used_ns = retired_cpu_ns_;
    for (const auto& process : processes_) used_ns += process->used_ns();
    return used_ns;
  }

  Status flush(SampleSink::Ending ending) {
    for (const auto& process : processes_) process->sampler().report();
    tell_of_tasks();
    return sink_.flush({monotonic_ns(), used_ns(), drops()}, ending);
  }

  void tell_of_tasks() {
    if (settings_.sampler.awaiting_tasks == AwaitingTasks::kNo) return;
    capture::TaskCounts all = retired_tasks_;
    for (const auto& process : processes_) add_counts(all, process->sampler().task_counts());
    sink_.task_counts(all);
  }
  static void add_counts(capture::TaskCounts& to, const capture::TaskCounts& from) {
    to.found += from.found;
    to.unreadable += from.unreadable;
  }

  const SessionSettings settings_;
  SampleSink& sink_;
  const WaitUntil& wait_until_;
  SharedNumbers numbers_;
  ProbeRoom probes_;
  std::optional<SharedCpu> shared_cpu_;
  std::optional<os::ThreadStopper> stopper_;
  Descendants descendants_;
  std::vector<std::unique_ptr<RecordedProcess>> processes_;  // the first is the one that was asked for
  SessionResult result_;
  Drops retired_drops_{};
  capture::TaskCounts retired_tasks_;
  std::int64_t retired_cpu_ns_ = 0;
  std::int64_t children_before_ns_ = 0, children_ns_ = 0;  // CPU time of those that ended, before and since
  std::int64_t next_threads_ns_ = 0, next_flush_ns_ = monotonic_ns() + kFlushInterval;
};

}  // namespace

Status check(const Target& target, const SessionSettings& settings) {
  const cpython::Version& version = target.layout.version;
  if (settings.sampler.mode == capture::Mode::kGil && version.threading == cpython::Version::Threading::kFree)
    return Error{ErrorKind::kUnsupported,
                 "Python " + version.text() +
                     " is free-threaded: no thread holds its lock, of which mode gil records; choose cpu or wall"};
  if (stops(settings) && !os::kCanStopThreads)
    return Error{ErrorKind::kUnsupported, "threads can be stopped, and native frames recorded, on x86-64 only, so far"};
  if (stops(settings) && is_traced(target.pid))
    return Error{ErrorKind::kPermission, "process " + std::to_string(static_cast<int>(target.pid)) +
                                             " is traced by another program (a debugger, strace), so that its threads "
                                             "cannot be stopped: leave --native and --stop out, or end that"};
  if (settings.stand != Stand::kApart || can_prove_running(target.layout)) return Ok{};
  return Error{
      ErrorKind::kUnsupported,
      "Python " + version.text() +
          " keeps its frames apart from each other, so that stacks of a thread that runs cannot be proven from "
          "other CPUs: leave --apart out, or record it from inside (plimsoll run)"};
}

Result<SessionResult> record(const Target& target, const SessionSettings& settings, SampleSink& sink,
                             const WaitUntil& wait_until) {
  PLIMSOLL_TRY(check(target, settings));
  os::wake_on_time();
  std::optional<os::Haste> haste;
  if (settings.stand != Stand::kApart) haste.emplace();
  return Session(target, settings, sink, wait_until).run();
}

}  // namespace plimsoll::remote
