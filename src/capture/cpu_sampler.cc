#include "capture/cpu_sampler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "capture/awaiting_tasks.h"
#include "capture/call_numbers.h"
#include "capture/tick_signals.h"
#include "memory/local.h"

namespace plimsoll::capture {
namespace {

constexpr std::int64_t kLongestPeriod = 1'000'000'000;
constexpr std::int64_t kSeldom = 50'000'000;  // between the ticks of a thread that a reader samples

Result<std::int64_t> period_of(double rate_hz) {
  constexpr double kSecond = 1e9;
  if (!(rate_hz >= kSecond / static_cast<double>(kLongestPeriod) &&
        rate_hz <= kSecond / static_cast<double>(CpuSampler::kShortestPeriod)))
    return Error{ErrorKind::kUsage, "the sampling rate must be between 1 and 100000 Hz"};
  return static_cast<std::int64_t>(std::llround(kSecond / rate_hz));
}

// A tick on the calling thread shows whether the kernel allows the clock here.
Status try_clock(os::TickClock clock, const TickSignals& signals) {
  const int signal = clock == os::TickClock::kPerf ? signals.perf : signals.timer;
  const Result<os::ThreadTick> tick =
      os::ThreadTick::create(clock, {os::current_tid(), signal, ThreadSlots::kUnheard, kLongestPeriod, kLongestPeriod});
  if (!tick.ok()) return tick.error();
  return Ok{};
}

Result<os::TickClock> choose_clock(const TickSettings& settings, const TickSignals& signals) {
  if (settings.clock) {
    PLIMSOLL_TRY(try_clock(*settings.clock, signals));
    return *settings.clock;
  }
  if (try_clock(os::TickClock::kPerf, signals).ok()) return os::TickClock::kPerf;
  // A CPU timer is exact up to the scheduler's own rate and never disturbs a sleeping thread. Above that rate a
  // monotonic timer ticks often enough, and on the thread's own CPU, so that samples are of where it is; but also in
  // waits, twice in each at most. (A thread of ours could send ticks only to threads that run. But a signal takes 20 us
  // to another CPU of a virtual machine, and is met at the next system call: a program that asked for the time every 4
  // us had 99 % of its samples there, where 28 % belong.)
  const bool slow_enough = settings.rate_hz * 2 <= os::scheduler_hz();
  const os::TickClock clock = slow_enough ? os::TickClock::kThreadCpu : os::TickClock::kMonotonic;
  PLIMSOLL_TRY(try_clock(clock, signals));
  return clock;
}

}  // namespace

Status CpuSampler::check(const TickSettings& settings) {
  const Result<std::int64_t> period = period_of(settings.rate_hz);
  return period.ok() ? Status{Ok{}} : Status{period.error()};
}

Result<std::unique_ptr<CpuSampler>> CpuSampler::create(const TickSettings& settings, const Interpreter& interpreter,
                                                       SampleRing& ring, SeenFilter& seen) {
  PLIMSOLL_TRY(check(settings));
  const Result<TickSignals> signals = install_tick_handlers();
  if (!signals.ok()) return signals.error();
  PLIMSOLL_TRY(memory::FaultGuard::ensure_installed());
  const Result<os::TickClock> clock = choose_clock(settings, signals.value());
  if (!clock.ok()) return clock.error();
  const bool ends_calls = clock.value() != os::TickClock::kPerf || signals.value().perf != SIGTRAP;
  if (ends_calls) learn_call_numbers(signals.value().timer);
  return std::unique_ptr<CpuSampler>(new CpuSampler(settings, interpreter, ring, seen, clock.value(), signals.value()));
}

CpuSampler::CpuSampler(const TickSettings& settings, const Interpreter& interpreter, SampleRing& ring, SeenFilter& seen,
                       os::TickClock clock, const TickSignals& signals)
    : interpreter_(interpreter),
      max_depth_(settings.max_depth),
      stack_slots_(settings.max_depth + awaiting_slots(interpreter)),
      only_attached_(settings.mode == Mode::kGil),
      by_reader_(settings.by_reader),
      measures_itself_(settings.measures_itself),
      modules_(settings.modules),
      bell_(settings.bell),
      clock_(clock),
      signals_(signals),
      ring_(ring),
      seen_(seen),
      random_(os::random_seed()),
      phase_(os::random_seed()) {
  if (measures_itself_) empty_tick_ns_ = measure_empty_tick();
  set_period(period_of(settings.rate_hz).value());
}

CpuSampler::~CpuSampler() { stop(); }

void CpuSampler::start(std::array<Tid, 2> except) {
  const std::lock_guard guard(mutex_);
  except_ = except;
  is_running_ = true;
  set_active_sampler(this);
  find_new_threads(Head::kMeasured);
}

void CpuSampler::except(std::array<Tid, 2> threads) {
  const std::lock_guard guard(mutex_);
  except_ = threads;
}

void CpuSampler::stop() {
  const std::lock_guard guard(mutex_);
  if (!is_running_) return;
  is_running_ = false;
  hold_ticks();
  // A handler that took a sample while its slot is retired would count the same time twice.
  set_active_sampler(nullptr);
  wait_for_handlers();
  slots_.for_each([&](ThreadSlot& slot) {
    const std::int64_t cpu_ns = os::thread_cpu_ns(slot.tid);
    retire(slot, cpu_ns, DropReason::kThreadEnded);
  });
  if (carried_ns_ > 0) count_drop(DropReason::kThreadEnded, std::exchange(carried_ns_, 0));
  if (pauses_ > 0) paused_cpu_ns_ += process_cpu_ns() - pause_began_cpu_ns_;
  pauses_ = 0;
}

void CpuSampler::abandon() {
  set_active_sampler(nullptr);
  forget_handlers();
  // Without the mutex: whoever may have held it does not exist in this process.
  is_running_ = false;
  slots_.for_each([](ThreadSlot& slot) {
    slot.tick.forget();
    slot.rest_tick.forget();
  });
}

// ---- pause and rate ----

void CpuSampler::hold_ticks(ThreadSlot& slot) {
  slot.tick.pause();
  slot.rest_tick.pause();
}

void CpuSampler::hold_ticks() {
  slots_.for_each([](ThreadSlot& slot) { hold_ticks(slot); });
}

void CpuSampler::pause() {
  const std::lock_guard guard(mutex_);
  if (pauses_++ > 0 || !is_running_) return;
  pause_began_cpu_ns_ = process_cpu_ns();
  paused_.store(true, std::memory_order_seq_cst);
  hold_ticks();
  wait_for_handlers();
  hold_ticks();  // a handler that was running may have restarted its tick
  slots_.for_each([&](ThreadSlot& slot) { slot.missed_ns = missed_ns(slot, os::thread_cpu_ns(slot.tid)); });
}

void CpuSampler::resume() {
  const std::lock_guard guard(mutex_);
  if (pauses_ == 0 || --pauses_ > 0 || !is_running_) return;
  paused_cpu_ns_ += process_cpu_ns() - pause_began_cpu_ns_;
  const std::int64_t period = period_ns_.load(std::memory_order_relaxed);
  slots_.for_each([&](ThreadSlot& slot) {
    // As for a thread that begins now; the credit pays for what it used between its last tick and the pause.
    const std::int64_t phase = next_phase();
    const std::int64_t cpu_ns = os::thread_cpu_ns(slot.tid);
    slot.grid_cpu_ns = cpu_ns - (period - phase);
    // What was too much for a first sample to be less by is owed by those after the next pauses.
    const std::int64_t owed = std::exchange(slot.missed_ns, 0) + std::min<std::int64_t>(carried_ns_, 0);
    const std::int64_t settled = std::max(owed, -period / 2);
    carried_ns_ = std::max<std::int64_t>(carried_ns_, 0) + owed - settled;
    slot.accounted_cpu_ns.store(slot.grid_cpu_ns - settled, std::memory_order_relaxed);
    slot.is_credited = slot.is_restless;
    slot.resting.store(false, std::memory_order_relaxed);
    slot.due_cpu_ns = 0;  // ticks of the pause were not counted: what is next is due
    restart_tick(slot, std::max(phase, soonest_ns()));
  });
  paused_.store(false, std::memory_order_release);
}

Status CpuSampler::set_rate(double rate_hz) {
  const Result<std::int64_t> period = period_of(rate_hz);
  if (!period.ok()) return period.error();
  const std::lock_guard guard(mutex_);
  set_period(period.value());
  slots_.for_each([&](ThreadSlot& slot) {
    slot.period_ns.store(tick_period(slot), std::memory_order_relaxed);
    if (is_paused()) return;
    slot.grid_cpu_ns = slot.accounted_cpu_ns.load(std::memory_order_relaxed);
    restart_tick(slot);
  });
  return Ok{};
}

// What a tick costs although its handler does nothing: the interrupt, the signal's frame, the way back. Measured, as it
// is one to two microseconds on a machine of one's own, and may be 25 on a virtual one: by how long a thread that reads
// the time without end does not come to read it, at most, in the time of one tick. Takes 2 ms.
std::int64_t CpuSampler::measure_empty_tick() {
  constexpr std::int64_t kPeriod = 100'000, kUnknown = 1'500;
  const int signal = clock_ == os::TickClock::kPerf ? signals_.perf : signals_.timer;
  // (Of the scheduler's own ticks there are too few; they come anyway.)
  if (clock_ == os::TickClock::kThreadCpu) return kUnknown;
  const Result<os::ThreadTick> tick =
      os::ThreadTick::create(clock_, {os::current_tid(), signal, ThreadSlots::kUnheard, kPeriod, kPeriod});
  if (!tick.ok()) return kUnknown;
  slots_.bind_descriptor(tick.value().descriptor(), ThreadSlots::kUnheard);
  if (!tick.value().restart(kPeriod, kPeriod)) return kUnknown;
  std::array<std::int64_t, 15> longest{};
  std::int64_t last_ns = monotonic_ns();
  for (std::int64_t& gap : longest) {
    for (const std::int64_t end_ns = last_ns + kPeriod; last_ns < end_ns;) {
      const std::int64_t now_ns = monotonic_ns();
      gap = std::max(gap, now_ns - std::exchange(last_ns, now_ns));
    }
  }
  const auto middle = longest.begin() + longest.size() / 2;
  std::nth_element(longest.begin(), middle, longest.end());
  return *middle;
}

void CpuSampler::set_period(std::int64_t asked_ns) {
  // A program whose ticks take longer than what is between them does next to nothing else: at 50 kHz on a virtual
  // machine, where they take 30 us, one took 23 s of CPU time instead of 0.14. It is to have half of its time, at
  // least. (With a timer the handler sets it again, which takes about as long.)
  constexpr std::int64_t kHarmless = 100'000;
  const std::int64_t least = clock_ == os::TickClock::kMonotonic ? 4 : 2;
  if (asked_ns < kHarmless && shortest_period_ns_ == 0) {
    if (empty_tick_ns_ == 0) empty_tick_ns_ = measure_empty_tick();
    shortest_period_ns_ = std::min(least * empty_tick_ns_, kHarmless);
  }
  asked_period_ns_.store(asked_ns, std::memory_order_relaxed);
  period_ns_.store(std::max(asked_ns, shortest_period_ns_), std::memory_order_relaxed);
}

std::int64_t CpuSampler::tick_period(const ThreadSlot& slot) const {
  const std::int64_t period = period_ns_.load(std::memory_order_relaxed);
  return slot.is_restless ? period : std::max(period, kSeldom);
}

void CpuSampler::restart_tick(ThreadSlot& slot) { restart_tick(slot, slot.period_ns.load(std::memory_order_relaxed)); }

bool CpuSampler::restart_tick(ThreadSlot& slot, std::int64_t first_ns) {
  slot.clock.restart(first_ns);
  slot.pace.restart();
  if (slot.is_blocked || slot.is_silent) return true;  // whoever ends that starts it again
  return slot.tick.restart(first_ns, slot.period_ns.load(std::memory_order_relaxed));
}

void CpuSampler::take_by_ticks(ThreadSlot& slot, bool by_ticks) {
  slot.is_restless = by_ticks;
  slot.is_credited = false;  // from now on its time is known to its end
  slot.period_ns.store(tick_period(slot), std::memory_order_relaxed);
  if (!is_paused()) restart_tick(slot);
}

std::size_t CpuSampler::thread_count() const {
  const std::lock_guard guard(mutex_);
  return by_tid_.size();
}

double CpuSampler::rate_hz() const {
  return 1e9 / static_cast<double>((by_reader_ ? asked_period_ns_ : period_ns_).load(std::memory_order_relaxed));
}

double CpuSampler::most_ticks_hz() const {
  const std::int64_t period = period_ns_.load(std::memory_order_relaxed);
  return period > asked_period_ns_.load(std::memory_order_relaxed) ? 1e9 / static_cast<double>(period) : 0;
}

std::int64_t CpuSampler::paused_cpu_ns() const {
  const std::lock_guard guard(mutex_);
  return paused_cpu_ns_ + (pauses_ > 0 ? process_cpu_ns() - pause_began_cpu_ns_ : 0);
}

std::array<DropTotal, kDropReasonCount> CpuSampler::drops() const {
  std::array<DropTotal, kDropReasonCount> totals{};
  for (std::size_t i = 0; i < totals.size(); ++i)
    totals[i] = {drop_counts_[i].load(std::memory_order_relaxed), drop_cpu_ns_[i].load(std::memory_order_relaxed)};
  return totals;
}

void CpuSampler::count_drop(DropReason reason, std::int64_t cpu_ns) {
  // The tail of a thread is time without a sample, not a sample that was lost.
  if (reason != DropReason::kThreadEnded)
    drop_counts_[static_cast<std::size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
  drop_cpu_ns_[static_cast<std::size_t>(reason)].fetch_add(cpu_ns, std::memory_order_relaxed);
}

TaskCounts CpuSampler::task_counts() const {
  return {tasks_found_.load(std::memory_order_relaxed), tasks_unreadable_.load(std::memory_order_relaxed)};
}

}  // namespace plimsoll::capture
