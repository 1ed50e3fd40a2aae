// alloc/event_log.h: every allocation and every free, one after the other, as words (base/allocation_words.h).
//
// What becomes of a block is found out by whoever reads the log: here a block only has a slot, whose number its end is
// told by. That costs a program less than sums would.
#pragma once

#include <atomic>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <utility>
#include <vector>

#include "alloc/books.h"
#include "alloc/site_numbers.h"
#include "base/allocation_words.h"
#include "base/tick_counter.h"

namespace plimsoll::alloc {

// A site that was not in the log before. Sites are numbered as they come, from 0 on; the first has no stack, and is for
// when there are too many.
struct LoggedSite {
  std::uint32_t stack = 0;
  Domain domain{};
  std::uint32_t size = 0;  // 0: of many sizes, told with each block
};

// What has happened since the batch before.
struct EventBatch {
  std::vector<LoggedSite> sites;
  std::vector<std::uint32_t> words;
};

// The log. As for its threads and errors, see BlockBooks.
//
// The time of an event is right to about ten microseconds. To look at it takes as long as half of what else is done
// with an event, so that in a long row of events that follow one another at once only every 64th looks. Where such a
// row pauses, some of those after the pause have the time before it: one for each 64 of the row, and 63 at most.
class EventLog final : public BlockBooks {
 public:
  // `attention` is given the bit `when_full` when there is enough to be taken.
  EventLog(std::atomic<std::uint32_t>& attention, std::uint32_t when_full);

  Token allocated(std::uint32_t stack, Domain domain, const void* at, std::size_t size) override {
    return allocated({}, stack, domain, at, size);
  }
  // As those of the Ledger.
  Token allocated(StackKey key, std::uint32_t stack, Domain domain, const void* at, std::size_t size);
  bool allocated_again(StackKey key, Domain domain, const void* /*at*/, std::size_t size, Token& token) {
    const auto* const noted = numbers_.find_noted(key, SiteNumbers::kind_of(domain, size));
    if (noted == nullptr) [[unlikely]]
      return false;
    token = allocated_at(noted->site, size);
    return true;
  }
  bool ended_quickly(Token token, const void* /*at*/) {
    if (is_due() || (token & kIsTold) != 0) [[unlikely]]
      return false;
    give_back(slot_of(token), AllocationEvent::kFreed);
    return true;
  }
  // Whether something is to be seen to before the next event: when it is, or room for it. The one look that every
  // event takes, at how far the log has come, is for both.
  [[nodiscard]] bool is_due() const { return used_ >= next_look_; }
  // It may be long since the last event.
  void expect_pause() { next_look_ = 0; }
  void ended(Token token, const void* /*at*/, Fate fate) override {
    look_if_due();
    const std::uint32_t slot = slot_of(token);
    if ((token & kIsTold) != 0) [[unlikely]]
      large_sizes_.erase(slot);
    give_back(slot, fate == Fate::kFreed ? AllocationEvent::kFreed : AllocationEvent::kMoved);
  }
  // (Its slot is known by the token alone.)
  std::size_t lift(Token, const void* /*at*/) noexcept override { return 0; }
  void moved(Token token, std::size_t /*size*/) override { ended(token, nullptr, Fate::kMoved); }
  void put_back(Token, const void* /*at*/, std::size_t /*size*/) override {}
  [[nodiscard]] Facts facts_of(Token token, const void* at) const override;
  [[nodiscard]] std::uint32_t stack_of(Token token) const override;
  // The slot that the log knows a block by.
  static std::uint32_t slot_of(Token token) { return (token & ~kIsTold) - 1; }

  [[nodiscard]] bool has_changed() const override { return used_ != 0 || told_sites_ != sites_.size(); }
  // What there is. From now on words are written into `room`, such as somebody has taken a batch out of: memory that is
  // touched for the first time costs the program as much as what it notes there.
  EventBatch take(std::vector<std::uint32_t> room = {});

 private:
  static constexpr std::uint32_t kMostSites = std::uint32_t{1} << 28U;
  static constexpr std::uint32_t kMostSlots = std::uint32_t{1} << 28U;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::size_t kFull = std::size_t{1} << 18U;  // words: a megabyte
  // Of a token: the block's size was told with it, as its site has no one size.
  static constexpr Token kIsTold = Token{1} << 31U;
  static constexpr std::size_t kMostWords = 3 * AllocationWords::kMostWords;  // the time, the size, and the event

  // Of a site with a number of its own.
  Token allocated_at(std::uint32_t site, std::size_t size) {
    look_if_due();
    // (A site of blocks of no bytes has none to tell either, and no site is the first's.)
    const bool is_told = site == 0 || size > kLargestSmall || size == 0;
    const std::uint32_t slot = take_slot(site, is_told, size);
    if (is_told) [[unlikely]]
      put(AllocationEvent::kSize, size);
    put(AllocationEvent::kAllocated, site);
    return (slot + 1) | (is_told ? kIsTold : 0U);
  }
  void give_back(std::uint32_t slot, AllocationEvent how) {
    slots_[slot] = std::exchange(free_slot_, slot);
    put(how, slot);
  }
  void look_if_due() {
    if (is_due()) [[unlikely]]
      look();
  }
  // Notes the time, and makes room for all that an event may need, so that nothing that follows can fail.
  void look();
  void grow();
  void put(AllocationEvent event, std::uint64_t value) {
    std::uint32_t* const begin = words_.data();
    used_ = static_cast<std::size_t>(AllocationWords::write(begin + used_, event, value) - begin);
  }
  std::uint32_t find_site(std::uint32_t stack, Domain domain, std::size_t size);
  // A slot for a block of the site.
  std::uint32_t take_slot(std::uint32_t site, bool is_told, std::size_t size) {
    const std::uint32_t slot = free_slot_;
    if (slot == kNone || is_told) [[unlikely]]
      return take_other_slot(site, is_told, size);
    free_slot_ = std::exchange(slots_[slot], site);
    return slot;
  }
  std::uint32_t take_other_slot(std::uint32_t site, bool is_told, std::size_t size);
  void look_at_clock(std::uint64_t ticks);

  // What every event needs, in one cache line:
  alignas(64) std::vector<std::uint32_t> words_;  // so many of them, the others are room:
  std::size_t used_ = 0;
  std::size_t next_look_ = 0;         // is due at so many words; never at more than leave room for an event
  std::vector<std::uint32_t> slots_;  // of a living block: its site; else the slot that was given back before

  std::uint32_t free_slot_ = kNone;  // the one that was given back last
  SiteNumbers numbers_{kMostSites};
  std::vector<LoggedSite> sites_;
  std::size_t told_sites_ = 0;
  boost::unordered_flat_map<std::uint32_t, std::size_t> large_sizes_;  // of living blocks without one in their site
  std::atomic<std::uint32_t>& attention_;
  const std::uint32_t when_full_;
  const std::uint64_t step_;   // of the count of ticks, after which the clock is looked at
  std::uint64_t ticks_ = 0;    // when it was looked at last
  std::int64_t time_us_ = 0;   // what it said then
  std::size_t looked_at_ = 0;  // how many words there were at the last look, and the count of ticks
  std::uint64_t looked_ = 0;
  std::size_t row_ = 0;  // so many words have followed one another at once
};

}  // namespace plimsoll::alloc
