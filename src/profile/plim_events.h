// profile/plim_events.h: the sections of a log of allocations, written and read; see docs/format.md.
#pragma once

#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/varint.h"
#include "profile/peak_accounts.h"
#include "profile/profile.h"

namespace plimsoll::profile {

// Writes the log.
class EventEncoder {
 public:
  // Appends a site to a section of them; `stack` is an optional id as it is in the file.
  static void put_site(std::string& out, const AllocationEvents::Site& site, std::int64_t stack);
  // A section of events. `start_us` is the start of the profile, by CLOCK_MONOTONIC.
  std::string events(std::span<const std::uint32_t> words, std::int64_t start_us);

 private:
  // A column of numbers below 2^33, as varints.
  class Column {
   public:
    // Empty, with room for so many.
    void reset(std::size_t most) {
      if (room_.size() < most * kLongest) room_.resize(most * kLongest);
      used_ = 0;
    }
    void put(std::uint64_t value) {
      for (; value >= 0x80U; value >>= 7U) room_[used_++] = static_cast<char>(value | 0x80U);
      room_[used_++] = static_cast<char>(value);
    }
    [[nodiscard]] std::string_view bytes() const { return {room_.data(), used_}; }

   private:
    static constexpr std::size_t kLongest = 5;
    std::vector<char> room_;
    std::size_t used_ = 0;
  };

  Column kinds_, slots_;  // kept to save allocations
  bool has_time_ = false;
  std::int64_t last_slot_ = 0;  // that was freed
};

// Finds out what became of each block of a log. In a profile blocks of one stack and allocator that were allocated at
// about the same time, and lived about as long, are one row: a log is longer than what a profile can hold.
class EventReplay {
 public:
  // These return false if that makes no sense.
  bool add_site(const AllocationEvents::Site& site);
  bool replay(VarintCursor& section);
  // At the end of the log: the type of a block that is alive; another one is passed over.
  void set_type(std::uint64_t slot, StringId type);
  // Fills the tables of a profile, after the last section.
  void finish(Profile& profile);

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  // A block that is alive, or the slot of one that was.
  struct Slot {
    std::uint32_t site = kNone;  // kNone: it is not
    std::uint32_t next = kNone;  // then: the slot that had been given back before
    std::int64_t born_us = 0;
  };
  // Blocks and bytes.
  struct Sum {
    std::int64_t blocks = 0, bytes = 0;
    void add(std::int64_t count, std::int64_t size) {
      blocks += count;
      bytes += size;
    }
  };
  // The row of an account that was added to last.
  struct LastRow {
    std::uint64_t when = ~std::uint64_t{0};
    std::size_t row = 0;
  };
  // A site: its account, and the bytes of each block; 0: of many sizes.
  struct SiteFacts {
    std::uint32_t account = 0;
    std::uint32_t size = 0;
  };
  // Blocks of an account that were born and ended, or are of a type, alike.
  struct Row {
    std::uint32_t account = 0;
    std::uint64_t when = 0;  // the stretch of birth << 32 | end_of() or type
    Sum sum;
  };
  // What a row is found by.
  struct RowKey {
    std::uint32_t account = 0;
    std::uint64_t when = 0;
    bool operator==(const RowKey&) const = default;
    friend std::size_t hash_value(const RowKey& key) {
      std::size_t seed = key.account;
      boost::hash_combine(seed, key.when);
      return seed;
    }
  };
  using RowIndex = boost::unordered_flat_map<RowKey, std::size_t, boost::hash<RowKey>>;

  bool allocate(std::uint64_t number, VarintCursor& sizes);
  bool end_block(std::int64_t number, bool is_freed);
  bool pass_time(std::uint64_t us);
  [[nodiscard]] std::int64_t size_of(std::uint32_t slot) const;
  void add_row(std::uint32_t account, std::uint64_t when, const Sum& sum);
  // Makes the stretches of birth twice as long, and so the rows fewer.
  void coarsen();
  [[nodiscard]] std::uint64_t stretch_of(std::int64_t us) const { return static_cast<std::uint64_t>(us) >> shift_; }
  [[nodiscard]] std::uint32_t end_of(std::int64_t born_us, bool is_freed) const;
  [[nodiscard]] AllocationRow row_of(std::uint32_t account, std::uint64_t when, const Sum& sum) const;
  void put_living(Profile& profile) const;

  std::int64_t now_us_ = 0;  // since the start of the profile
  unsigned shift_ = 10;      // a stretch of birth is this power of two in microseconds, a millisecond at first
  std::size_t most_rows_ = std::size_t{1} << 19U;
  std::vector<SiteFacts> sites_;
  PeakAccounts accounts_;
  std::vector<LastRow> last_rows_;  // by account
  std::vector<Slot> slots_;
  std::uint32_t free_slot_ = kNone;
  std::int64_t last_slot_ = 0;
  boost::unordered_flat_map<std::uint32_t, std::int64_t> told_sizes_;  // of living blocks, by slot
  boost::unordered_flat_map<std::uint32_t, StringId> types_;           // likewise
  std::vector<Row> rows_;
  RowIndex row_index_;
  std::int64_t allocated_bytes_ = 0;
};

}  // namespace plimsoll::profile
