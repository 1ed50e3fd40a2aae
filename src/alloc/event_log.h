// alloc/event_log.h: every allocation and every free, one after the other, as words (base/allocation_words.h).
//
// What becomes of a block is found out by whoever reads the log: here a block only has a slot, whose number its end is
// told by. That costs a program less than sums would.
#pragma once

#include <atomic>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <vector>

#include "alloc/books.h"
#include "alloc/site_numbers.h"

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

// The log. As for its threads and errors, see BlockBooks. The time of an event is right to about ten microseconds.
class EventLog final : public BlockBooks {
 public:
  // `attention` is given the bit `when_full` when there is enough to be taken.
  EventLog(std::atomic<std::uint32_t>& attention, std::uint32_t when_full);

  Token allocated(std::uint32_t stack, Domain domain, const void* at, std::size_t size) override;
  void ended(Token token, const void* at, Fate fate) override;
  [[nodiscard]] Facts facts_of(Token token, const void* at) const override;
  [[nodiscard]] std::uint32_t stack_of(Token token) const override;
  // The slot that the log knows a block by.
  static std::uint32_t slot_of(Token token) { return token - 1; }

  EventBatch take();

 private:
  static constexpr std::uint32_t kMostSites = std::uint32_t{1} << 28U;
  static constexpr std::uint32_t kMostSlots = std::uint32_t{1} << 28U;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::size_t kFull = std::size_t{1} << 18U;  // words: a megabyte

  // Room for an event, its size and the time, so that nothing that follows can fail.
  void make_room();
  void note_time();

  std::atomic<std::uint32_t>& attention_;
  const std::uint32_t when_full_;
  const std::uint64_t step_;  // of the count of ticks, after which the clock is looked at
  std::uint64_t ticks_ = 0;   // when it was looked at last
  std::int64_t time_us_ = 0;  // what it said then
  SiteNumbers numbers_{kMostSites};
  std::vector<LoggedSite> sites_;
  std::size_t told_sites_ = 0;
  std::vector<std::uint32_t> slots_;  // of a living block: its site; else the slot that was given back before
  std::uint32_t free_slot_ = kNone;   // the one that was given back last
  boost::unordered_flat_map<std::uint32_t, std::size_t> large_sizes_;  // of living blocks without one in their site
  std::vector<std::uint32_t> words_;
};

}  // namespace plimsoll::alloc
