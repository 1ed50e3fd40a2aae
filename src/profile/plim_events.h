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
  // A section of events, in `out`. `start_us` is the start of the profile, by CLOCK_MONOTONIC.
  void put_events(std::string& out, std::span<const std::uint32_t> words, std::int64_t start_us);
  // One without any.
  static std::string no_events() {
    std::string out;
    EventEncoder().put_events(out, {}, 0);
    return out;
  }

 private:
  // A column of numbers below 2^33, as varints.
  class Column {
   public:
    // Where one ends that is being written. (A local of whoever writes, so that it stays in a register.)
    class End {
     public:
      explicit End(char* at) : at_(at) {}
      // Mostly without a branch, which would go the wrong way every other time: what programs allocate has no pattern.
      void put(std::uint64_t value) { at_ += write(value); }
      void put_if(bool is_wanted, std::uint64_t value) { at_ += is_wanted ? write(value) : 0; }

     private:
      friend class Column;
      // How many bytes it takes.
      std::size_t write(std::uint64_t value) {
        if (value >= std::uint64_t{1} << 14U) [[unlikely]]
          return write_long(value);
        const std::uint64_t is_long = value > 0x7f ? 1 : 0;
        at_[0] = static_cast<char>(value | is_long << 7U);
        at_[1] = static_cast<char>(value >> 7U);
        return 1 + is_long;
      }
      std::size_t write_long(std::uint64_t value) {
        std::size_t size = 0;
        for (; value >= 0x80U; value >>= 7U) at_[size++] = static_cast<char>(value | 0x80U);
        at_[size++] = static_cast<char>(value);
        return size;
      }
      char* at_;
    };
    // Empty, with room for so many.
    End begin(std::size_t most) {
      const std::size_t bytes = most * kLongest + 1;  // as two bytes are written where one counts
      if (room_.size() < bytes) room_.resize(bytes);
      return End(room_.data());
    }
    [[nodiscard]] std::string_view bytes(const End& end) const {
      return {room_.data(), static_cast<std::size_t>(end.at_ - room_.data())};
    }

   private:
    static constexpr std::size_t kLongest = 5;
    std::vector<char> room_;
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
  // The memory that this takes by now.
  [[nodiscard]] std::uint64_t bytes() const {
    constexpr std::size_t kIndex = 24;  // bytes of a place in an index
    return slots_.size() * sizeof(Slot) + (told_sizes_.size() + types_.size()) * kIndex +
           rows_.size() * (sizeof(Row) + kIndex) + sites_.size() * sizeof(SiteFacts) +
           accounts_.size() * PeakAccounts::kBytes;
  }

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
