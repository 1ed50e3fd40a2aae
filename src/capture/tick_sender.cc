#include "capture/tick_sender.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "os/put_aside.h"

namespace plimsoll::capture {
namespace {

// A thread that so many looks in a row have found still is asked at each kSeldom-th look only, at which others are not:
// hundreds of threads that wait cost little.
constexpr std::uint32_t kStill = 64;
constexpr std::uint32_t kSeldom = 8;

// Whether it runs or stands in the queue of a CPU.
bool is_ready(const os::ThreadProbe& probe) { return probe.wait().kind == os::KernelWait::Kind::kRunnable; }

// Whether it would run if we did not, given its last two looks.
bool is_displaced(Tid tid, const Sending::Look& last, const Sending::Look& now) {
  const os::ThreadProbe probe(tid, os::ThreadProbe::Keep::kClosed);
  if (!is_ready(probe)) return false;
  if (os::has_only_computed(now.cpu_ns - last.cpu_ns, now.time_ns - last.time_ns)) return true;
  return os::was_just_put_aside(probe).value_or(false);
}

void send_tick(ThreadSlot& slot) {
  Sending& sending = slot.sending;
  sending.ticks = slot.ticks.load(std::memory_order_relaxed);
  sending.cpu_at_tick_ns = sending.last_look.cpu_ns;
  sending.is_awaited = slot.tick.send();
}

}  // namespace

void TickSender::begin_round() {
  ++round_;
  paused_count_ = 0;
}

bool TickSender::look_at(ThreadSlot& slot) {
  Sending& sending = slot.sending;
  const bool is_due = sending.still_looks < kStill || (round_ + slot.number) % kSeldom == 0;
  if (slot.tick.clock() != os::TickClock::kDirected || !is_due) return false;
  const std::int64_t cpu_ns = os::thread_cpu_ns(slot.tid);
  const Look last = std::exchange(sending.last_look, {monotonic_ns(), cpu_ns});
  if (cpu_ns <= last.cpu_ns) {
    ++sending.still_looks;
    return false;
  }
  sending.still_looks = 0;
  if (slot.is_blocked || slot.silent_until_ns != 0 || is_too_soon(slot, cpu_ns)) return true;
  // A clock that moves is of a thread that has a CPU at this instant.
  if (os::thread_cpu_ns(slot.tid) != cpu_ns)
    send_tick(slot);
  else
    keep({&slot, last});
  return true;
}

void TickSender::keep(const Paused& paused) {
  if (paused_count_ < kMostAsked) {
    paused_[paused_count_++] = paused;
    return;
  }
  const auto least = std::min_element(paused_.begin(), paused_.end(),
                                      [](const Paused& a, const Paused& b) { return a.used_ns() < b.used_ns(); });
  if (least->used_ns() < paused.used_ns()) *least = paused;
}

void TickSender::end_round() const {
  for (std::size_t i = 0; i < paused_count_; ++i) {
    ThreadSlot& slot = *paused_[i].slot;
    if (is_displaced(slot.tid, paused_[i].last, slot.sending.last_look)) send_tick(slot);
  }
}

bool TickSender::is_too_soon(ThreadSlot& slot, std::int64_t cpu_ns) {
  // A thread that blocks the signal has a queue of them, which must not grow, until CpuSampler::poll finds that out.
  // But a tick may also come to nothing, in a pause for example.
  constexpr std::int64_t kPatience = 32;  // periods of the thread's CPU time
  Sending& sending = slot.sending;
  const std::int64_t since_ns = cpu_ns - sending.cpu_at_tick_ns;
  if (sending.is_awaited && slot.ticks.load(std::memory_order_relaxed) != sending.ticks) sending.is_awaited = false;
  if (sending.is_awaited) return since_ns < kPatience * slot.period_ns.load(std::memory_order_relaxed);
  return !slot.is_restless && since_ns < slot.period_ns.load(std::memory_order_relaxed);
}

}  // namespace plimsoll::capture
