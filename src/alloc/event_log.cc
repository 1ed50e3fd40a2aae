#include "alloc/event_log.h"

#include <new>
#include <utility>

#include "base/allocation_words.h"
#include "base/clock.h"
#include "base/tick_counter.h"

namespace plimsoll::alloc {

EventLog::EventLog(std::atomic<std::uint32_t>& attention, std::uint32_t when_full)
    : attention_(attention), when_full_(when_full), step_(ticks_of_ten_us()), sites_(1) {
  words_.reserve(kFull);
}

void EventLog::make_room() {
  constexpr std::size_t kMostEvents = 3;
  if (words_.capacity() - words_.size() >= kMostEvents * AllocationWords::kMostWords) [[likely]]
    return;
  attention_.fetch_or(when_full_, std::memory_order_relaxed);
  words_.reserve(words_.size() + kFull / 4);
}

void EventLog::note_time() {
  const std::uint64_t ticks = tick_count();
  if (ticks - ticks_ < step_) [[likely]]
    return;
  ticks_ = ticks;
  const std::int64_t now_us = monotonic_ns() / 1000;
  if (now_us <= time_us_) return;
  AllocationWords::put(words_, AllocationEvent::kTime, static_cast<std::uint64_t>(now_us - time_us_));
  time_us_ = now_us;
}

BlockBooks::Token EventLog::allocated(std::uint32_t stack, Domain domain, const void* /*at*/, std::size_t size) {
  make_room();
  const std::uint32_t site = numbers_.find(stack, domain, size, [&](std::uint32_t) {
    sites_.push_back({stack, domain, size > kLargestSmall ? 0 : static_cast<std::uint32_t>(size)});
  });
  const bool is_new = free_slot_ == kNone;
  const std::uint32_t slot = is_new ? static_cast<std::uint32_t>(slots_.size()) : free_slot_;
  if (slot == kMostSlots) throw std::bad_alloc();
  // (A site of blocks of no bytes has none to tell either.)
  const bool is_told = sites_[site].size == 0;
  if (is_told) large_sizes_[slot] = size;
  if (is_new)
    slots_.push_back(site);
  else
    free_slot_ = std::exchange(slots_[slot], site);
  note_time();
  if (is_told) AllocationWords::put(words_, AllocationEvent::kSize, size);
  AllocationWords::put(words_, AllocationEvent::kAllocated, site);
  return slot + 1;
}

void EventLog::ended(Token token, const void* /*at*/, Fate fate) {
  make_room();
  const std::uint32_t slot = slot_of(token);
  note_time();
  if (sites_[slots_[slot]].size == 0) large_sizes_.erase(slot);
  slots_[slot] = std::exchange(free_slot_, slot);
  AllocationWords::put(words_, fate == Fate::kFreed ? AllocationEvent::kFreed : AllocationEvent::kMoved, slot);
}

BlockBooks::Facts EventLog::facts_of(Token token, const void* /*at*/) const {
  const LoggedSite& site = sites_[slots_[slot_of(token)]];
  Facts facts{site.stack, site.domain, 0, site.size};
  if (site.size != 0) return facts;
  const auto found = large_sizes_.find(slot_of(token));
  if (found != large_sizes_.end()) facts.size = found->second;
  return facts;
}

std::uint32_t EventLog::stack_of(Token token) const { return sites_[slots_[slot_of(token)]].stack; }

EventBatch EventLog::take() {
  EventBatch batch;
  std::vector<std::uint32_t> empty;
  empty.reserve(kFull);
  batch.sites.assign(sites_.begin() + static_cast<std::ptrdiff_t>(told_sites_), sites_.end());
  batch.words = std::exchange(words_, std::move(empty));
  told_sites_ = sites_.size();
  return batch;
}

}  // namespace plimsoll::alloc
