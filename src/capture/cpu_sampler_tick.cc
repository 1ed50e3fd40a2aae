// capture/cpu_sampler_tick.cc: what a tick's signal handler does.
#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "capture/cpu_sampler.h"
#include "capture/interrupted_call.h"
#include "capture/native_sample.h"
#include "capture/walk_into.h"

namespace plimsoll::capture {
namespace {

constexpr std::uint32_t kJitterTicks = 8;  // ticks of a perf event between changes of its period

// True while the scope holds the slot's guard; false if a handler on the same thread holds it already.
class ReentryGuard {
 public:
  explicit ReentryGuard(std::atomic<bool>& flag)
      : flag_(flag), entered_(!flag.exchange(true, std::memory_order_acquire)) {}
  ReentryGuard(const ReentryGuard&) = delete;
  ReentryGuard& operator=(const ReentryGuard&) = delete;
  ~ReentryGuard() {
    if (entered_) flag_.store(false, std::memory_order_release);
  }
  [[nodiscard]] bool entered() const { return entered_; }

 private:
  std::atomic<bool>& flag_;
  const bool entered_;
};

}  // namespace

void CpuSampler::count_tasks(cpython::AwaitingStack::Outcome outcome) {
  using Outcome = cpython::AwaitingStack::Outcome;
  if (outcome == Outcome::kNoStep) return;
  (outcome == Outcome::kFound ? tasks_found_ : tasks_unreadable_).fetch_add(1, std::memory_order_relaxed);
}

ThreadSlot* CpuSampler::slot_of(const siginfo_t& info) const noexcept {
  const os::TickOrigin origin = os::origin_of(info);
  ThreadSlot* slot = nullptr;
  if (origin.kind == os::TickOrigin::Kind::kSlot) slot = slots_.find(origin.value);
  if (origin.kind == os::TickOrigin::Kind::kDescriptor) slot = slots_.find_by_descriptor(origin.value);
  if (slot == nullptr) return nullptr;
  const auto self = static_cast<std::uint64_t>(::pthread_self());
  std::uint64_t owner = slot->pthread.load(std::memory_order_relaxed);
  if (owner == 0 && slot->tid == os::current_tid()) {
    slot->pthread.store(self, std::memory_order_relaxed);
    owner = self;
  }
  return owner == self ? slot : nullptr;
}

void CpuSampler::count_foreign(const siginfo_t& info) noexcept {
  const os::TickOrigin origin = os::origin_of(info);
  const bool has_descriptor = origin.kind == os::TickOrigin::Kind::kDescriptor;
  // (That was to measure what a tick costs.)
  if ((has_descriptor ? slots_.number_of(origin.value) : origin.value) == ThreadSlots::kUnheard) return;
  count_drop(DropReason::kForeignSignal, 0);
}

bool CpuSampler::tick(const siginfo_t& info, const ucontext_t* context) noexcept {
  if (paused_.load(std::memory_order_seq_cst)) return false;
  ThreadSlot* slot = slot_of(info);
  if (slot == nullptr) return count_foreign(info), false;
  const ReentryGuard guard(slot->busy);
  if (!guard.entered()) return count_drop(DropReason::kReentered, 0), false;
  const std::uint32_t ticks = slot->ticks.fetch_add(1, std::memory_order_relaxed);
  const std::int64_t began_ns = monotonic_ns();
  take_sample(*slot, began_ns, context);
  if (measures_itself_) tick_costs_.add(monotonic_ns() - began_ns);
  if (ticks % kJitterTicks == 0 && slot->tick.clock() == os::TickClock::kPerf) vary_period(*slot);
  return slot->tick.clock() != os::TickClock::kMonotonic || slot->rest_tick.is_armed();
}

void CpuSampler::vary_period(ThreadSlot& slot) noexcept {
  const std::int64_t asked = slot.period_ns.load(std::memory_order_relaxed);
  const std::int64_t period = slot.pace.next(slot.clock.cpu_ns(), kJitterTicks, slot.jitter.next(asked, slot.random));
  slot.clock.vary(period);
  slot.tick.set_period(period);
  // Who changed the rate since we looked may have set the timer before we did.
  const std::int64_t asked_now = slot.period_ns.load(std::memory_order_seq_cst);
  if (asked_now == asked) return;
  slot.clock.restart(asked_now);
  slot.pace.restart();
  slot.tick.set_period(asked_now);
}

std::int64_t CpuSampler::cpu_ns_at_tick(ThreadSlot& slot, std::int64_t now_ns) noexcept {
  if (slot.tick.clock() == os::TickClock::kPerf)
    if (const std::optional<std::int64_t> inferred = slot.clock.infer(now_ns)) return *inferred;
  const std::int64_t cpu_ns = thread_cpu_ns();
  slot.clock.read(now_ns, cpu_ns);
  return cpu_ns;
}

void CpuSampler::take_sample(ThreadSlot& slot, std::int64_t now_ns, const ucontext_t* context) noexcept {
  const std::int64_t cpu_ns = cpu_ns_at_tick(slot, now_ns);
  if (slot.tick.clock() == os::TickClock::kMonotonic) {
    const bool is_in_wait = context != nullptr && has_interrupted_call(*context);
    if (!is_due(slot, now_ns, cpu_ns, is_in_wait)) return;
  }
  const std::int64_t weight = slot.account_until(cpu_ns);
  const Interpreter::ThreadState thread_state = interpreter_.thread_state_of_caller();
  slot.thread_state.store(raw(thread_state.address), std::memory_order_relaxed);
  if (weight == 0) return;  // a reader was here a moment ago
  if (only_attached_ && !thread_state.is_attached) return;

  if (modules_ != nullptr && context != nullptr)
    return take_native_sample(slot, thread_state.address, weight, *context);
  RawSample sample;
  sample.weight_ns = weight;
  sample.thread = slot.serial;
  sample.stack = RawSample::Stack::kOnLast;
  const std::span<cpython::PyFrame> slots = slot.stacks.room();
  const auto registers = [&] { return context != nullptr ? native::registers_of(*context) : native::Registers{}; };
  const WrittenStack stack =
      walk_into(sample, interpreter_, thread_state.address, registers, slots, seen_, cpython::NoEntries{});
  count_tasks(stack.tasks);
  if (!cpython::is_proven(sample.stop)) return count_drop(reason_of(sample.stop), weight);
  const std::size_t same = slot.stacks.same_outer(stack.used);
  const std::span<const cpython::PyFrame> inner = slots.first(stack.used - same);
  mark_frames(inner.first(std::min<std::size_t>(inner.size(), sample.frame_count)), seen_);
  const SampleRing::Slot room = ring_.reserve(sizeof sample + inner.size_bytes());
  if (room.bytes.empty()) return count_drop(DropReason::kRingFull, weight);
  sample.time_ns = monotonic_ns();  // after the record was reserved
  sample.same_outer = static_cast<std::uint32_t>(same);
  std::memcpy(room.bytes.data(), &sample, sizeof sample);
  std::memcpy(room.bytes.data() + sizeof sample, inner.data(), inner.size_bytes());
  ring_.commit(room, sizeof sample + inner.size_bytes(), sizeof sample + inner.size_bytes());
  slot.stacks.keep(stack.used);
}

void CpuSampler::take_native_sample(ThreadSlot& slot, Address thread_state, std::int64_t weight,
                                    const ucontext_t& context) noexcept {
  const SampleRing::Slot room = ring_.reserve(most_native_bytes(interpreter_, max_depth_, most_copied(ring_)));
  if (room.bytes.empty()) return count_drop(DropReason::kRingFull, weight);
  RawSample head;
  head.time_ns = monotonic_ns();
  head.weight_ns = weight;
  head.thread = slot.serial;
  const native::ModuleMap& modules = *modules_->current();
  const NativeSample taken =
      write_native_sample(room.bytes, head, modules, context, interpreter_, thread_state, max_depth_, seen_);
  if (!cpython::is_proven(taken.stop)) count_drop(reason_of(taken.stop), weight);
  count_tasks(taken.tasks);
  ring_.commit(room, taken.used, taken.written);
  // A file was loaded a moment ago, and until its table is compiled each sample takes a copy of its stack; or there is
  // code of no file: a look is enough until something changes.
  const bool is_unknown =
      taken.native_stop == native::UnwindStop::kNoModule || taken.native_stop == native::UnwindStop::kNoTable;
  const bool is_news = is_unknown && rang_for_.exchange(&modules, std::memory_order_relaxed) != &modules;
  if (is_news || ring_.backlog() > ring_.capacity() / 2) bell_->ring();
}

bool CpuSampler::is_due(ThreadSlot& slot, std::int64_t now_ns, std::int64_t cpu_ns, bool is_in_wait) const noexcept {
  // A monotonic timer ticks while the thread waits or is preempted, too, and such a tick is handled where the thread
  // goes on: mostly in a system call, which would get the time of all that ran before it. So a sample is due only when
  // its CPU time has come; until then the timer is set again for what is left of it. A thread that is never preempted
  // is sampled at its first tick.
  constexpr std::int64_t kClose = 20'000;
  const std::int64_t period = slot.period_ns.load(std::memory_order_relaxed);
  const std::int64_t used = cpu_ns - std::exchange(slot.cpu_at_tick_ns, cpu_ns);
  const std::int64_t late = now_ns - slot.tick_due_ns;  // a preempted thread's tick is late, a waiting one's is not
  const bool was_resting = slot.resting.exchange(false, std::memory_order_relaxed);
  // The first tick in a wait finds that the thread has run before it. A second one is the last, whatever the first has
  // cost: the wait begins anew each time.
  const bool was_in_wait = std::exchange(slot.was_in_wait, is_in_wait);
  const bool has_hardly_run = used < slot.tick_set_ns / 8;
  const bool is_waiting =
      is_in_wait ? has_hardly_run || was_in_wait : has_hardly_run && !was_resting && late < slot.tick_set_ns / 2;
  slot.due_cpu_ns = std::min(slot.due_cpu_ns, cpu_ns + 2 * period);  // the rate may have been raised
  const bool is_due = cpu_ns >= slot.due_cpu_ns - kClose;
  if (is_due) slot.due_cpu_ns = std::max(slot.due_cpu_ns, cpu_ns - period) + slot.jitter.next(period, slot.random);
  const std::int64_t left = std::max(slot.due_cpu_ns - cpu_ns, kShortestPeriod);
  slot.tick_set_ns = left;
  slot.tick_due_ns = now_ns + left;
  if (is_waiting)
    rest(slot, left);
  else
    slot.tick.restart(left, period);
  return is_due;
}

void CpuSampler::rest(ThreadSlot& slot, std::int64_t cpu_left_ns) const noexcept {
  // A monotonic timer interrupts whatever the thread sleeps in. So that a sleep is interrupted twice at most, the tick
  // stops here, and a timer on the thread's CPU clock, which stands still in a sleep, starts it again.
  if (!slot.rest_tick.is_armed()) return;
  slot.resting.store(true, std::memory_order_relaxed);
  slot.tick.pause();
  slot.rest_tick.restart(cpu_left_ns, 0);
}

}  // namespace plimsoll::capture
