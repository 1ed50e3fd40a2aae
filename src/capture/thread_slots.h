// capture/thread_slots.h: one slot for each sampled thread, findable from a signal handler.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "capture/inferred_clock.h"
#include "capture/last_stack.h"
#include "capture/tick_jitter.h"
#include "capture/tick_pace.h"
#include "os/os.h"

namespace plimsoll::capture {

// What the sampler knows of one thread. The atomics are shared with the thread's own signal handler; everything else
// is guarded by CpuSampler's mutex.
struct alignas(128) ThreadSlot {
  std::uint32_t number = 0;  // by which ticks name the slot; fixed
  // Written before the tick is armed, read by the handler.
  Tid tid{};
  ThreadSerial serial;
  os::ThreadTick tick;
  // With TickClock::kMonotonic: wakes the tick up again once the thread has used CPU time; see CpuSampler::rest.
  os::ThreadTick rest_tick;

  std::atomic<bool> in_use{false};
  // pthread_self() of the thread, set by its first tick: a signal that outlived its slot's former thread is not ours.
  std::atomic<std::uint64_t> pthread{0};
  std::atomic<bool> busy{false};  // the re-entrancy guard
  // The thread's CPU clock up to which its time has been accounted for.
  std::atomic<std::int64_t> accounted_cpu_ns{0};
  // Time up to `cpu_ns` on that clock that had not been accounted for, and now is. Async-signal-safe.
  std::int64_t account_until(std::int64_t cpu_ns) {
    std::int64_t before = accounted_cpu_ns.load(std::memory_order_relaxed);
    while (before < cpu_ns)
      if (accounted_cpu_ns.compare_exchange_weak(before, cpu_ns, std::memory_order_relaxed)) return cpu_ns - before;
    return 0;
  }
  std::atomic<std::uint32_t> ticks{0};
  std::atomic<bool> resting{false};
  // The thread's PyThreadState as last seen by the thread itself; null if it has none. It may be gone by now.
  std::atomic<std::uint64_t> thread_state{0};
  std::atomic<std::int64_t> period_ns{0};  // between its ticks
  std::uint64_t random = 0;                // the handler's, as is the next
  TickJitter jitter;
  InferredClock clock;  // with TickClock::kPerf, as is the next
  TickPace pace;
  // The handler's, with TickClock::kMonotonic: the thread's CPU clock at the last tick and when the next sample is due;
  // how far the timer was set ahead, and for when.
  std::int64_t cpu_at_tick_ns = 0;
  std::int64_t due_cpu_ns = 0;
  std::int64_t tick_set_ns = 0;
  std::int64_t tick_due_ns = 0;
  bool was_in_wait = false;  // that tick interrupted a call
  LastStack stacks;          // the handler's

  // Bookkeeping.
  ThreadInfo info;
  std::int64_t start_cpu_ns = 0;
  bool is_credited = false;      // its samples stand for the time after its last one, too
  std::int64_t grid_cpu_ns = 0;  // then one sample is due at each whole period after this
  std::int64_t missed_ns = 0;    // in a pause: what samples before it should have paid for
  std::uint32_t ticks_at_poll = 0;
  bool is_blocked = false;  // blocks our signal: paused by the watchdog
  bool is_silent = false;   // see CpuSampler::silence_caller
  // A RunReader's: see there.
  double restlessness = 0;
  bool is_restless = true;
  std::int64_t cpu_at_look_ns = 0;
};

// All slots. find and find_by_descriptor are async-signal-safe; the others need the owner's mutex.
class ThreadSlots {
 public:
  // The number of no slot, for ticks that nobody is to hear of.
  static constexpr std::uint32_t kUnheard = 1U << 20U;

  // A free slot with the atomics reset, for the caller to fill; nullptr when a million threads are being sampled.
  ThreadSlot* allocate();
  // From now on handlers find the slot, with everything that was written to it. Not before: a signal that outlived the
  // slot's former thread must not meet a half-filled one.
  void publish(ThreadSlot& slot);
  // The slot's thread is gone. Its tick must be disarmed.
  void release(ThreadSlot& slot);
  void bind_descriptor(int descriptor, std::uint32_t number);

  [[nodiscard]] ThreadSlot* find(std::uint32_t number) const {
    if (number >= kChunks * kChunkSlots) return nullptr;
    ThreadSlot* chunk = chunks_[number / kChunkSlots].load(std::memory_order_acquire);
    if (chunk == nullptr) return nullptr;
    ThreadSlot* slot = chunk + number % kChunkSlots;
    return slot->in_use.load(std::memory_order_acquire) ? slot : nullptr;
  }
  [[nodiscard]] ThreadSlot* find_by_descriptor(std::uint32_t descriptor) const { return find(number_of(descriptor)); }
  // Of the slot that the descriptor was bound to; that of no slot if it was not.
  [[nodiscard]] std::uint32_t number_of(std::uint32_t descriptor) const {
    constexpr std::uint32_t kNone = 0;
    return (descriptor < kDescriptors ? by_descriptor_[descriptor].load(std::memory_order_acquire) : kNone) - 1;
  }

  // Calls visit(ThreadSlot&) for every slot in use.
  template <typename Visit>
  void for_each(Visit visit) {  // which may release what it visits
    for (const auto& chunk : owned_)
      for (std::size_t i = 0; i < kChunkSlots; ++i)
        if (chunk[i].in_use.load(std::memory_order_relaxed)) visit(chunk[i]);
  }

 private:
  static constexpr std::uint32_t kChunkSlots = 64;
  static constexpr std::uint32_t kChunks = 16384;
  static constexpr std::uint32_t kDescriptors = 1U << 16U;
  static_assert(kUnheard == kChunks * kChunkSlots);

  std::vector<std::unique_ptr<ThreadSlot[]>> owned_;
  std::vector<std::uint32_t> free_;
  std::array<std::atomic<ThreadSlot*>, kChunks> chunks_{};
  std::array<std::atomic<std::uint32_t>, kDescriptors> by_descriptor_{};  // slot number + 1; 0 = none
};

}  // namespace plimsoll::capture
