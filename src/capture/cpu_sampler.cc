#include "capture/cpu_sampler.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "base/clock.h"
#include "base/random.h"
#include "capture/awaiting_tasks.h"
#include "capture/tick_signals.h"
#include "memory/local.h"

namespace plimsoll::capture {
namespace {

constexpr std::int64_t kLongestPeriod = 1'000'000'000;
constexpr std::int64_t kSeldom = 50'000'000;  // between the ticks of a thread that a reader samples
// Until a reader knows better; see RunReader.
constexpr double kRestlessAtFirst = 1.0 / 8;

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
      os::ThreadTick::create(clock, {os::current_tid(), signal, 0, kLongestPeriod, kLongestPeriod});
  if (!tick.ok()) return tick.error();
  return Ok{};
}

Result<os::TickClock> choose_clock(const TickSettings& settings, const TickSignals& signals) {
  if (settings.clock) {
    PLIMSOLL_TRY(try_clock(*settings.clock, signals));
    return *settings.clock;
  }
  if (try_clock(os::TickClock::kPerf, signals).ok()) return os::TickClock::kPerf;
  // A CPU timer is exact up to the scheduler's own rate and never disturbs a sleeping thread; above that rate only a
  // monotonic timer ticks often enough.
  const bool slow_enough = settings.rate_hz * 2 <= os::scheduler_hz();
  const os::TickClock clock = slow_enough ? os::TickClock::kThreadCpu : os::TickClock::kMonotonic;
  PLIMSOLL_TRY(try_clock(clock, signals));
  return clock;
}

// What a tick costs although its handler does nothing: the interrupt, the signal's frame, the way back. Measured, as it
// is one to two microseconds on a machine of one's own, and may be 25 on a virtual one: by how long a thread that reads
// the time without end does not come to read it, at most, in the time of one tick. Takes 2 ms.
std::int64_t measure_empty_tick(os::TickClock clock, const TickSignals& signals) {
  constexpr std::int64_t kPeriod = 100'000, kUnknown = 1'500;
  const int signal = clock == os::TickClock::kPerf ? signals.perf : signals.timer;
  // (Of the scheduler's own ticks there are too few; they come anyway.)
  if (clock == os::TickClock::kThreadCpu) return kUnknown;
  const Result<os::ThreadTick> tick = os::ThreadTick::create(clock, {os::current_tid(), signal, 0, kPeriod, kPeriod});
  if (!tick.ok() || !tick.value().restart(kPeriod, kPeriod)) return kUnknown;
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
  if (measures_itself_) empty_tick_ns_ = measure_empty_tick(clock_, signals_);
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

// ---- threads ----

void CpuSampler::thread_started(const std::string& name) noexcept {
  const std::lock_guard guard(mutex_);
  if (!is_running_) return;
  try {
    meet_caller(name);
  } catch (const std::bad_alloc&) {
    // A later poll will find it.
  }
}

void CpuSampler::meet_caller(const std::string& name) {
  const Tid tid = os::current_tid();
  if (const auto known = by_tid_.find(static_cast<std::int32_t>(tid)); known != by_tid_.end()) {
    ThreadSlot& slot = *known->second;
    // Mostly poll has found the thread before it could register. But the kernel may also have used the id of a thread
    // again whose end nobody has told us: then the clock has started over.
    const std::int64_t before = slot.clock.last_read_ns();  // before it is read again: a tick may come between
    if (thread_cpu_ns() >= before) {
      slot.thread_state.store(raw(interpreter_.thread_state_of_caller().address), std::memory_order_relaxed);
      if (!name.empty()) slot.info.name = name;
      return report(slot);
    }
    retire(slot, 0, DropReason::kThreadEnded);
  }
  ended_.erase(static_cast<std::int32_t>(tid));
  // What it has used up to here, for example to wait for the GIL, is its own, too.
  adopt(tid, thread_cpu_ns(), Head::kCredited);
  const auto found = by_tid_.find(static_cast<std::int32_t>(tid));
  if (found == by_tid_.end()) return;
  found->second->thread_state.store(raw(interpreter_.thread_state_of_caller().address), std::memory_order_relaxed);
  if (!name.empty()) found->second->info.name = name;
}

ThreadSerial CpuSampler::serial_of_caller() {
  const auto tid = static_cast<std::int32_t>(os::current_tid());
  {
    const std::lock_guard guard(mutex_);
    if (const auto known = by_tid_.find(tid); known != by_tid_.end()) return known->second->serial;
  }
  thread_started({});
  const std::lock_guard guard(mutex_);
  const auto known = by_tid_.find(tid);
  return known != by_tid_.end() ? known->second->serial : ThreadSerial{};
}

void CpuSampler::thread_ending(const std::string& name) noexcept {
  const std::lock_guard guard(mutex_);
  const auto found = by_tid_.find(static_cast<std::int32_t>(os::current_tid()));
  if (!is_running_ || found == by_tid_.end()) return;
  ThreadSlot& slot = *found->second;
  std::int64_t* ended_at_cpu_ns = nullptr;
  try {
    if (!name.empty()) slot.info.name = name;
    ended_at_cpu_ns = &ended_[static_cast<std::int32_t>(slot.tid)];
  } catch (const std::bad_alloc&) {
    return;  // a poll finds that it is gone
  }
  disarm(slot);
  const std::int64_t cpu_ns = thread_cpu_ns();
  const std::int64_t missed = is_paused() ? std::exchange(slot.missed_ns, 0) : missed_ns(slot, cpu_ns);
  carried_ns_ += missed;
  slot.accounted_cpu_ns.fetch_add(missed, std::memory_order_relaxed);
  *ended_at_cpu_ns = cpu_ns;
  retire(slot, cpu_ns, DropReason::kThreadEnded);
}

void CpuSampler::name_thread(Tid tid, const std::string& name) {
  const std::lock_guard guard(mutex_);
  const auto found = by_tid_.find(static_cast<std::int32_t>(tid));
  if (found == by_tid_.end() || name.empty()) return;
  found->second->info.name = name;
  report(*found->second);
}

void CpuSampler::set_thread_state(Tid tid, Address thread_state) {
  const std::lock_guard guard(mutex_);
  const auto found = by_tid_.find(static_cast<std::int32_t>(tid));
  if (found != by_tid_.end()) found->second->thread_state.store(raw(thread_state), std::memory_order_relaxed);
}

void CpuSampler::silence_caller() {
  constexpr std::int64_t kSilence = 1'000'000'000;
  const std::lock_guard guard(mutex_);
  const auto found = by_tid_.find(static_cast<std::int32_t>(os::current_tid()));
  if (found == by_tid_.end()) return;
  ThreadSlot& slot = *found->second;
  slot.tick.pause();  // a tick that is pending arrives on the way back from this system call
  slot.rest_tick.pause();
  slot.silent_until_ns = monotonic_ns() + kSilence;
}

os::TickClock CpuSampler::clock_for_next_thread() const {
  if (clock_ != os::TickClock::kPerf) return clock_;
  // Each perf tick holds a descriptor; the program's own come first.
  constexpr rlim_t kShare = 4;
  rlimit limit{};
  const bool known = ::getrlimit(RLIMIT_NOFILE, &limit) == 0;
  const rlim_t allowed = known ? std::min<rlim_t>(limit.rlim_cur, 1U << 16U) / kShare : 64;
  return perf_ticks_ < allowed ? clock_ : os::TickClock::kMonotonic;
}

std::int64_t CpuSampler::next_phase() {
  constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;  // of 2^64
  phase_ += kGoldenRatio;
  const auto period = static_cast<std::uint64_t>(period_ns_.load(std::memory_order_relaxed));
  constexpr unsigned kFraction = 34;  // a period has 30 bits: the product fits
  return 1 + static_cast<std::int64_t>(((phase_ >> kFraction) * period) >> (64U - kFraction));
}

std::int64_t CpuSampler::soonest_ns() const {
  // A perf event goes on with its first period until the first tick is handled, which is on the way back from the
  // system call that starts it. Where an interrupt takes about as long as that, as in a virtual machine that shares its
  // CPUs, the thread does nothing but take interrupts: with 10 us for up to 1.4 s, with 15 us 50 ms, with 30 us no
  // more.
  constexpr std::int64_t kSoonestPerf = 50'000, kSoonest = 1'000;
  return std::min(clock_ == os::TickClock::kPerf ? kSoonestPerf : kSoonest, period_ns_.load(std::memory_order_relaxed));
}

std::int64_t CpuSampler::missed_ns(const ThreadSlot& slot, std::int64_t final_cpu_ns) const {
  const std::int64_t accounted = slot.accounted_cpu_ns.load(std::memory_order_relaxed);
  if (!slot.is_credited) return std::max<std::int64_t>(0, final_cpu_ns - accounted);
  const std::int64_t period = period_ns_.load(std::memory_order_relaxed);
  const std::int64_t due = std::max<std::int64_t>(0, final_cpu_ns - slot.grid_cpu_ns) / period * period;
  return due - (accounted - slot.grid_cpu_ns);
}

std::int64_t CpuSampler::carried_share() const {
  // No less than half a period must be left for the first sample; and what whole ticks of others have missed is not for
  // one thread to make up for.
  const std::int64_t period = period_ns_.load(std::memory_order_relaxed);
  return std::clamp(carried_ns_, -period / 2, period);
}

void CpuSampler::adopt(Tid tid, std::int64_t used_ns, Head head) {
  ThreadSlot* slot = slots_.allocate();
  if (slot == nullptr) return count_drop(DropReason::kTooManyThreads, 0);
  const std::int64_t phase = next_phase();
  const std::int64_t first_ns = std::max(phase - used_ns, soonest_ns());
  const std::int64_t cpu_ns = os::thread_cpu_ns(tid);
  const std::int64_t now = monotonic_ns();
  slot->tid = tid;
  slot->serial = ThreadSerial{next_serial_++};
  slot->random = next_random(random_) | 1U;
  slot->start_cpu_ns = cpu_ns - used_ns;
  slot->is_credited = head == Head::kCredited;
  slot->missed_ns = 0;
  const std::int64_t credit = slot->is_credited ? period_ns_.load(std::memory_order_relaxed) - phase : 0;
  const std::int64_t carried = slot->is_credited ? carried_share() : 0;
  carried_ns_ -= carried;
  slot->grid_cpu_ns = slot->start_cpu_ns - credit;
  slot->accounted_cpu_ns.store(slot->grid_cpu_ns - carried, std::memory_order_relaxed);
  slot->period_ns.store(period_ns_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  slot->is_restless = true;
  slot->restlessness = kRestlessAtFirst;
  slot->cpu_at_look_ns = 0;
  slot->clock.read(now, cpu_ns);
  slot->cpu_at_tick_ns = cpu_ns;
  slot->due_cpu_ns = cpu_ns + first_ns;
  slot->tick_set_ns = first_ns;
  slot->tick_due_ns = now + first_ns;
  slot->info = ThreadInfo{slot->serial, tid, {}, now, now};
  if (!make_room(*slot) || !arm(*slot, first_ns)) {  // no memory; or the thread has ended in the meantime
    carried_ns_ += carried;
    disarm(*slot);
    return slots_.release(*slot);
  }
  by_tid_[static_cast<std::int32_t>(tid)] = slot;
  report(*slot);
}

bool CpuSampler::make_room(ThreadSlot& slot) {
  try {
    if (slot.stacks.room().size() < stack_slots_) slot.stacks = LastStack(stack_slots_);
    slot.stacks.forget();
    slot.info.name = os::thread_name(slot.tid);
    by_tid_.reserve(by_tid_.size() + 1);
    if (changes_.size() == changes_.capacity()) changes_.reserve(2 * changes_.size() + 1);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

bool CpuSampler::arm(ThreadSlot& slot, std::int64_t first_ns) {
  const std::int64_t period = slot.period_ns.load(std::memory_order_relaxed);
  os::ThreadTick::Settings settings{slot.tid, signals_.timer, slot.number, first_ns, period};
  const os::TickClock clock = clock_for_next_thread();
  if (clock == os::TickClock::kPerf) settings.signal = signals_.perf;
  Result<os::ThreadTick> tick = os::ThreadTick::create(clock, settings);
  settings.signal = signals_.timer;
  if (!tick.ok() && clock_ == os::TickClock::kPerf)  // out of descriptors, most likely
    tick = os::ThreadTick::create(os::TickClock::kMonotonic, settings);
  if (!tick.ok()) return false;
  slot.tick = tick.take();
  if (slot.tick.clock() == os::TickClock::kPerf) {
    ++perf_ticks_;
    slots_.bind_descriptor(slot.tick.descriptor(), slot.number);
  }
  if (slot.tick.clock() == os::TickClock::kMonotonic) {
    Result<os::ThreadTick> rest = os::ThreadTick::create(os::TickClock::kThreadCpu, settings);
    if (rest.ok()) slot.rest_tick = rest.take();
  }
  slots_.publish(slot);
  return is_paused() || restart_tick(slot, first_ns);
}

void CpuSampler::disarm(ThreadSlot& slot) {
  if (slot.tick.clock() == os::TickClock::kPerf && slot.tick.is_armed()) --perf_ticks_;
  slot.tick.disarm();
  slot.rest_tick.disarm();
}

void CpuSampler::retire(ThreadSlot& slot, std::int64_t final_cpu_ns, DropReason reason) {
  disarm(slot);
  const std::int64_t accounted = slot.accounted_cpu_ns.load(std::memory_order_relaxed);
  if (const std::int64_t missed = is_paused() ? slot.missed_ns : missed_ns(slot, final_cpu_ns); missed > 0)
    count_drop(reason, missed);
  slot.info.end_ns = monotonic_ns();
  slot.info.cpu_ns = std::max(final_cpu_ns, accounted) - slot.start_cpu_ns;
  slot.info.has_ended = true;
  report(slot);
  by_tid_.erase(static_cast<std::int32_t>(slot.tid));
  slots_.release(slot);
}

void CpuSampler::report(const ThreadSlot& slot) noexcept {
  try {
    changes_.push_back(slot.info);
  } catch (const std::bad_alloc&) {
    // The profile has of it what was told before.
  }
}

std::vector<ThreadInfo> CpuSampler::take_thread_changes() {
  const std::lock_guard guard(mutex_);
  return std::exchange(changes_, {});
}

void CpuSampler::find_new_threads(Head head) {
  try {
    adopt_new_threads(head);
  } catch (const std::bad_alloc&) {
    threads_at_look_ = 0;
  }
}

void CpuSampler::adopt_new_threads(Head head) {
  boost::unordered_flat_map<std::int32_t, std::int64_t> still_ending;
  for (const Tid tid : os::list_threads()) {
    const auto id = static_cast<std::int32_t>(tid);
    if (tid == except_[0] || tid == except_[1] || by_tid_.contains(id)) continue;
    // A thread that Python has done with needs a moment more to end; a clock that has started over is another thread's.
    if (const auto ended = ended_.find(id); ended != ended_.end() && os::thread_cpu_ns(tid) >= ended->second)
      still_ending.insert(*ended);
    else
      adopt_late(tid, head);
  }
  ended_ = std::move(still_ending);
}

void CpuSampler::adopt_late(Tid tid, Head head) {
  // One that was started after the recording: what it has used so far is a part of what is recorded. Its first sample
  // stands for less than a period of it.
  const std::int64_t used_ns = head == Head::kCredited && !is_paused() ? os::thread_cpu_ns(tid) : 0;
  const std::int64_t rest_ns = used_ns % period_ns_.load(std::memory_order_relaxed);
  adopt(tid, rest_ns, head);
  const auto found = by_tid_.find(static_cast<std::int32_t>(tid));
  if (found == by_tid_.end() || used_ns == rest_ns) return;
  found->second->start_cpu_ns -= used_ns - rest_ns;
  count_drop(DropReason::kMetLate, used_ns - rest_ns);
}

void CpuSampler::look_for_threads() {
  const std::size_t count = os::count_threads();
  const std::lock_guard guard(mutex_);
  if (is_running_ && std::exchange(threads_at_look_, count) != count) find_new_threads(Head::kCredited);
}

int CpuSampler::signal_of(const ThreadSlot& slot) const {
  return slot.tick.clock() == os::TickClock::kPerf ? signals_.perf : signals_.timer;
}

void CpuSampler::give_up_traps() {
  signals_.perf = signals_.timer;
  slots_.for_each([&](ThreadSlot& slot) {
    if (slot.tick.clock() != os::TickClock::kPerf) return;
    disarm(slot);
    arm(slot, slot.period_ns.load(std::memory_order_relaxed));
  });
}

void CpuSampler::poll() {
  const std::lock_guard guard(mutex_);
  if (!is_running_) return;
  if (signals_.perf == SIGTRAP && !traps_are_ours()) give_up_traps();
  slots_.for_each([&](ThreadSlot& slot) { poll_slot(slot); });
  find_new_threads(Head::kCredited);
}

void CpuSampler::poll_slot(ThreadSlot& slot) {
  constexpr std::int64_t kSilence = 64;  // periods of CPU time without a tick
  const std::int64_t cpu_ns = os::thread_cpu_ns(slot.tid);
  const std::int64_t accounted = slot.accounted_cpu_ns.load(std::memory_order_relaxed);
  // A clock that is gone, or runs behind what we know, belongs to a thread that has ended (its id may live again).
  if (cpu_ns == 0 || cpu_ns < slot.info.cpu_ns + slot.start_cpu_ns) {
    retire(slot, slot.info.cpu_ns + slot.start_cpu_ns, DropReason::kThreadEnded);
    return;
  }
  slot.info.end_ns = monotonic_ns();
  slot.info.cpu_ns = cpu_ns - slot.start_cpu_ns;
  if (is_paused()) return;
  if (slot.silent_until_ns != 0) {
    if (slot.info.end_ns < slot.silent_until_ns) return;
    slot.silent_until_ns = 0;
    restart_tick(slot);
    return;
  }
  const std::uint32_t ticks = slot.ticks.load(std::memory_order_relaxed);
  const bool is_silent = ticks == std::exchange(slot.ticks_at_poll, ticks);
  // Silence alone proves nothing: on a crowded machine the scheduler's ticks, and CPU timers with them, come late.
  const bool is_suspect = is_silent && cpu_ns - accounted > kSilence * slot.period_ns.load(std::memory_order_relaxed);
  if (is_suspect && os::blocks_signal(slot.tid, signal_of(slot))) {
    slot.tick.pause();
    slot.is_blocked = true;
    // (It may have let the signal in meanwhile, and have a sample of that time.)
    count_drop(DropReason::kSignalBlocked, slot.account_until(cpu_ns));
  } else if (slot.is_blocked && !os::blocks_signal(slot.tid, signal_of(slot))) {
    slot.is_blocked = false;
    restart_tick(slot);
  }
}

// ---- pause and rate ----

void CpuSampler::hold_ticks() {
  slots_.for_each([](ThreadSlot& slot) {
    slot.tick.pause();
    slot.rest_tick.pause();
  });
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
    const std::int64_t settled = std::max(slot.missed_ns, -period / 2);
    carried_ns_ += std::exchange(slot.missed_ns, 0) - settled;
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

void CpuSampler::set_period(std::int64_t asked_ns) {
  // A program whose ticks take longer than what is between them does next to nothing else: at 50 kHz on a virtual
  // machine, where they take 30 us, one took 23 s of CPU time instead of 0.14. It is to have half of its time, at
  // least. (With a timer the handler sets it again, which takes about as long.)
  constexpr std::int64_t kHarmless = 100'000;
  const std::int64_t least = clock_ == os::TickClock::kMonotonic ? 4 : 2;
  if (asked_ns < kHarmless && shortest_period_ns_ == 0) {
    if (empty_tick_ns_ == 0) empty_tick_ns_ = measure_empty_tick(clock_, signals_);
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
  return slot.tick.restart(first_ns, slot.period_ns.load(std::memory_order_relaxed));
}

void CpuSampler::take_by_ticks(ThreadSlot& slot, bool by_ticks) {
  slot.is_restless = by_ticks;
  slot.is_credited = false;  // from now on its time is known to its end
  slot.period_ns.store(tick_period(slot), std::memory_order_relaxed);
  restart_tick(slot);
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
