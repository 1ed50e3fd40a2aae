#include "alloc/event_log.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/clock.h"

namespace plimsoll::alloc {

EventLog::EventLog(std::atomic<std::uint32_t>& attention, std::uint32_t when_full)
    : words_(kFull), sites_(1), attention_(attention), when_full_(when_full), step_(ticks_of_ten_us()) {}

void EventLog::grow() {
  attention_.fetch_or(when_full_, std::memory_order_relaxed);
  words_.resize(words_.size() + kFull / 4);
}

void EventLog::look() {
  constexpr std::size_t kInARow = 64, kFarthest = 64;  // see the header
  const std::uint64_t ticks = tick_count();
  const std::size_t since = used_ - looked_at_;
  const bool at_once = ticks - looked_ < step_ / 2;
  row_ = at_once ? row_ + since : 0;
  looked_ = ticks;
  if (words_.size() - used_ < kMostWords) grow();
  if (ticks - ticks_ >= step_) look_at_clock(ticks);
  looked_at_ = used_;
  next_look_ = std::min(used_ + std::clamp<std::size_t>(row_ / kInARow, 1, kFarthest), words_.size() - kMostWords + 1);
}

void EventLog::look_at_clock(std::uint64_t ticks) {
  ticks_ = ticks;
  const std::int64_t now_us = monotonic_ns() / 1000;
  if (now_us <= time_us_) return;
  put(AllocationEvent::kTime, static_cast<std::uint64_t>(now_us - time_us_));
  time_us_ = now_us;
}

BlockBooks::Token EventLog::allocated(StackKey key, std::uint32_t stack, Domain domain, const void* /*at*/,
                                      std::size_t size) {
  const std::uint32_t site = find_site(stack, domain, size);
  numbers_.note(key, SiteNumbers::kind_of(domain, size), site);
  return allocated_at(site, size);
}

std::uint32_t EventLog::find_site(std::uint32_t stack, Domain domain, std::size_t size) {
  return numbers_.find(stack, SiteNumbers::kind_of(domain, size), [&](std::uint32_t) {
    sites_.push_back({stack, domain, size > kLargestSmall ? 0 : static_cast<std::uint32_t>(size)});
  });
}

std::uint32_t EventLog::take_other_slot(std::uint32_t site, bool is_told, std::size_t size) {
  const bool is_new = free_slot_ == kNone;
  const std::uint32_t slot = is_new ? static_cast<std::uint32_t>(slots_.size()) : free_slot_;
  if (slot == kMostSlots) throw std::bad_alloc();
  if (is_new && slots_.size() == slots_.capacity()) slots_.reserve(2 * slots_.size() + 64);
  if (is_told) large_sizes_[slot] = size;
  if (is_new)
    slots_.push_back(site);
  else
    free_slot_ = std::exchange(slots_[slot], site);
  return slot;
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

EventBatch EventLog::take(std::vector<std::uint32_t> room) {
  EventBatch batch;
  room.resize(kFull);
  batch.sites.assign(sites_.begin() + static_cast<std::ptrdiff_t>(told_sites_), sites_.end());
  batch.words = std::exchange(words_, std::move(room));
  batch.words.resize(std::exchange(used_, 0));
  looked_at_ = next_look_ = 0;
  told_sites_ = sites_.size();
  return batch;
}

}  // namespace plimsoll::alloc
