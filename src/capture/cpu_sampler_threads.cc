// capture/cpu_sampler_threads.cc: which threads have ticks, from their beginning to their end.
#include <sys/resource.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/clock.h"
#include "base/random.h"
#include "base/signals_blocked.h"
#include "capture/cpu_sampler.h"
#include "capture/tick_signals.h"

namespace plimsoll::capture {
namespace {

// Until a reader knows better; see RunReader.
constexpr double kRestlessAtFirst = 1.0 / 8;

}  // namespace

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
  adopt(tid, 0, Head::kCredited);
  const auto found = by_tid_.find(static_cast<std::int32_t>(tid));
  if (found == by_tid_.end()) return;
  found->second->thread_state.store(raw(interpreter_.thread_state_of_caller().address), std::memory_order_relaxed);
  if (name.empty()) return;
  found->second->info.name = name;
  report(*found->second);  // adopt has told of it by the kernel's name
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
  const std::lock_guard guard(mutex_);
  const auto found = by_tid_.find(static_cast<std::int32_t>(os::current_tid()));
  if (found == by_tid_.end()) return;
  ThreadSlot& slot = *found->second;
  slot.is_silent = true;
  hold_ticks(slot);  // a tick that is pending arrives on the way back from this system call
  const SignalsBlocked blocked = ticks_blocked();
  hold_ticks(slot);  // its handler may have started it again
  take_blocked_ticks();
}

void CpuSampler::end_silence_of_caller() {
  const std::lock_guard guard(mutex_);
  const auto found = by_tid_.find(static_cast<std::int32_t>(os::current_tid()));
  if (found == by_tid_.end()) return;
  ThreadSlot& slot = *found->second;
  if (std::exchange(slot.is_silent, false) && !is_paused()) restart_tick(slot);
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

void CpuSampler::adopt(Tid tid, std::int64_t start_cpu_ns, Head head) {
  ThreadSlot* slot = slots_.allocate();
  if (slot == nullptr) return count_drop(DropReason::kTooManyThreads, 0);
  const std::int64_t phase = next_phase();
  const std::int64_t cpu_ns = std::max(os::thread_cpu_ns(tid), start_cpu_ns);  // 0: it has ended
  const std::int64_t now = monotonic_ns();
  const std::int64_t first_ns = std::max(phase - (cpu_ns - start_cpu_ns), soonest_ns());
  slot->tid = tid;
  slot->serial = ThreadSerial{next_serial_++};
  slot->random = next_random(random_) | 1U;
  slot->start_cpu_ns = start_cpu_ns;
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
  slot->was_in_wait = false;
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
  // A thread that Python has done with needs a moment more to end; a clock that has started over is another thread's.
  // (Whether the list has it says nothing: the kernel leaves some out while many end, and has them in the next one.)
  boost::unordered_flat_map<std::int32_t, std::int64_t> still_ending;
  for (const auto& [id, cpu_ns] : ended_)
    if (!os::has_ended(Tid{id}) && os::thread_cpu_ns(Tid{id}) >= cpu_ns) still_ending.emplace(id, cpu_ns);
  ended_ = std::move(still_ending);
  for (const Tid tid : os::list_threads()) {
    const auto id = static_cast<std::int32_t>(tid);
    if (tid == except_[0] || tid == except_[1] || by_tid_.contains(id) || ended_.contains(id)) continue;
    adopt_late(tid, head);
  }
}

void CpuSampler::adopt_late(Tid tid, Head head) {
  // One that was started after the recording: what it has used so far is a part of what is recorded. Its first sample
  // stands for less than a period of it.
  const std::int64_t cpu_ns = os::thread_cpu_ns(tid);
  const std::int64_t used_ns = head == Head::kCredited && !is_paused() ? cpu_ns : 0;
  const std::int64_t rest_ns = used_ns % period_ns_.load(std::memory_order_relaxed);
  adopt(tid, cpu_ns - rest_ns, head);
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
    arm(slot, slot.period_ns.load(std::memory_order_relaxed));  // if that fails, poll_slot tries again
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
  const std::int64_t known_ns = slot.info.cpu_ns + slot.start_cpu_ns;
  // A clock that is gone, or runs behind what we know, belongs to a thread that has ended (its id may live again).
  if (cpu_ns < known_ns || (cpu_ns == 0 && os::has_ended(slot.tid))) {
    retire(slot, known_ns, DropReason::kThreadEnded);
    return;
  }
  slot.info.end_ns = monotonic_ns();
  slot.info.cpu_ns = cpu_ns - slot.start_cpu_ns;
  if (is_paused()) return;
  if (!slot.tick.is_armed()) {
    count_drop(DropReason::kTooManyThreads, slot.account_until(cpu_ns));
    arm(slot, slot.period_ns.load(std::memory_order_relaxed));
    return;
  }
  if (slot.is_silent) return;
  const std::uint32_t ticks = slot.ticks.load(std::memory_order_relaxed);
  const bool is_silent = ticks == std::exchange(slot.ticks_at_poll, ticks);
  // Silence alone proves nothing: on a crowded machine the scheduler's ticks, and CPU timers with them, come late.
  const bool is_suspect = is_silent && cpu_ns - accounted > kSilence * slot.period_ns.load(std::memory_order_relaxed);
  if (is_suspect && os::blocks_signal(slot.tid, signal_of(slot))) {
    hold_ticks(slot);
    slot.is_blocked = true;
    // (It may have let the signal in meanwhile, and have a sample of that time.)
    count_drop(DropReason::kSignalBlocked, slot.account_until(cpu_ns));
  } else if (slot.is_blocked && !os::blocks_signal(slot.tid, signal_of(slot))) {
    slot.is_blocked = false;
    restart_tick(slot);
  } else if (is_suspect && slot.resting.load(std::memory_order_relaxed)) {
    restart_tick(slot);  // what was to wake it up is late, or came while the program ignored all signals
  }
}

}  // namespace plimsoll::capture
