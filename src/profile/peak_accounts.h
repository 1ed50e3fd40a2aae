// profile/peak_accounts.h: of each stack and allocator, how much is alive, and how much was when most was: for readers
// of logs that have each allocation and each free.
#pragma once

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <vector>

#include "profile/allocation_table.h"

namespace plimsoll::profile {

// Who allocates.
struct BlockSource {
  ThreadId thread;
  StackId stack;
  std::uint8_t domain = 0;
  bool operator==(const BlockSource&) const = default;
};
inline std::size_t hash_value(const BlockSource& source) {
  std::size_t seed = source.thread.index();
  boost::hash_combine(seed, source.stack.is_none() ? SIZE_MAX : std::size_t{source.stack.index()});
  boost::hash_combine(seed, source.domain);
  return seed;
}
// A row of blocks from there, of none yet.
inline AllocationRow row_from(const BlockSource& source) {
  AllocationRow row;
  row.thread = source.thread;
  row.stack = source.stack;
  row.domain = source.domain;
  row.blocks = 0;
  return row;
}

// The accounts. What one had at the last peak is kept when it changes for the first time after that.
class PeakAccounts {
 public:
  // Of the account of a source; numbered from 0 on.
  std::uint32_t number_of(const BlockSource& source) {
    const auto [found, is_new] = numbers_.try_emplace(source, static_cast<std::uint32_t>(accounts_.size()));
    if (is_new) accounts_.push_back({.source = source});
    return found->second;
  }
  [[nodiscard]] const BlockSource& source(std::uint32_t number) const { return accounts_[number].source; }
  [[nodiscard]] std::size_t size() const { return accounts_.size(); }

  // A block has been allocated.
  void born(std::uint32_t number, std::uint64_t bytes) {
    Account& account = keep_peak(accounts_[number]);
    account.blocks += 1;
    account.bytes += bytes;
    bytes_ += bytes;
  }
  // It ends, or with no block, a part of one. If this was a peak, it was at `peak_ns`.
  void gone(std::uint32_t number, std::uint64_t blocks, std::uint64_t bytes, std::int64_t peak_ns) {
    note_peak(peak_ns);
    Account& account = keep_peak(accounts_[number]);
    account.blocks -= blocks;
    account.bytes -= bytes;
    bytes_ -= bytes;
  }
  // At the end: adds what was alive at the peak, and returns when that was. If it is now, it was at `peak_ns`.
  std::int64_t put_peak(AllocationTable& table, std::int64_t peak_ns) {
    note_peak(peak_ns);
    for (Account& account : accounts_) {
      keep_peak(account);
      if (account.peak_bytes == 0 && account.peak_blocks == 0) continue;
      AllocationRow& row = table.emplace_back(row_from(account.source));
      row.time_ns = peak_ns_;
      row.size = account.peak_bytes;
      row.blocks = std::max<std::uint64_t>(account.peak_blocks, 1);
    }
    return peak_ns_;
  }

  // What an account takes, with its place in the index.
  static constexpr std::size_t kBytes = 96;

 private:
  // What of a source is alive, and what was at the last peak so far.
  struct Account {
    BlockSource source;
    std::uint64_t blocks = 0, bytes = 0;
    std::uint64_t peak_blocks = 0, peak_bytes = 0;
    std::uint32_t as_of = 0;  // which peak that was
  };

  Account& keep_peak(Account& account) const {
    if (account.as_of == peaks_) return account;
    account.peak_blocks = account.blocks;
    account.peak_bytes = account.bytes;
    account.as_of = peaks_;
    return account;
  }
  // What is alive is about to become less.
  void note_peak(std::int64_t peak_ns) {
    if (bytes_ <= most_bytes_) return;
    most_bytes_ = bytes_;
    peak_ns_ = peak_ns;
    ++peaks_;
  }

  std::vector<Account> accounts_;
  boost::unordered_flat_map<BlockSource, std::uint32_t, boost::hash<BlockSource>> numbers_;
  std::uint64_t bytes_ = 0, most_bytes_ = 0;
  std::uint32_t peaks_ = 0;
  std::int64_t peak_ns_ = 0;
};

}  // namespace plimsoll::profile
