#include "capture/thread_slots.h"

namespace plimsoll::capture {

ThreadSlot* ThreadSlots::allocate() {
  if (free_.empty()) {
    if (owned_.size() == kChunks) return nullptr;
    free_.reserve((owned_.size() + 1) * kChunkSlots);  // for all: whoever releases a slot needs no memory
    const auto first = static_cast<std::uint32_t>(owned_.size()) * kChunkSlots;
    owned_.push_back(std::make_unique<ThreadSlot[]>(kChunkSlots));
    for (std::uint32_t i = kChunkSlots; i-- > 0;) free_.push_back(first + i);
    chunks_[first / kChunkSlots].store(owned_.back().get(), std::memory_order_release);
  }
  const std::uint32_t number = free_.back();
  free_.pop_back();
  ThreadSlot& slot = owned_[number / kChunkSlots][number % kChunkSlots];
  slot.number = number;
  slot.pthread.store(0, std::memory_order_relaxed);
  slot.busy.store(false, std::memory_order_relaxed);
  slot.ticks.store(0, std::memory_order_relaxed);
  slot.resting.store(false, std::memory_order_relaxed);
  slot.thread_state.store(0, std::memory_order_relaxed);
  slot.ticks_at_poll = 0;
  slot.jitter.restart();
  slot.is_blocked = false;
  slot.is_silent = false;
  return &slot;
}

void ThreadSlots::publish(ThreadSlot& slot) { slot.in_use.store(true, std::memory_order_release); }

void ThreadSlots::release(ThreadSlot& slot) {
  slot.in_use.store(false, std::memory_order_release);
  free_.push_back(slot.number);
}

void ThreadSlots::bind_descriptor(int descriptor, std::uint32_t number) {
  if (descriptor >= 0 && descriptor < static_cast<int>(kDescriptors))
    by_descriptor_[static_cast<std::size_t>(descriptor)].store(number + 1, std::memory_order_release);
}

}  // namespace plimsoll::capture
