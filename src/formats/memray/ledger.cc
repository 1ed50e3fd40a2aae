#include "formats/memray/ledger.h"

#include <algorithm>

namespace plimsoll::formats::memray {

using profile::AllocationRow;

Ledger::Block Ledger::born(const Site& site, std::uint64_t size, std::int64_t now_ns) {
  const std::uint32_t number = accounts_.number_of(site);
  const auto [birth, is_new] = birth_index_.try_emplace({number, now_ns}, static_cast<std::uint32_t>(births_.size()));
  if (is_new) births_.emplace_back(number, now_ns);
  accounts_.born(number, size);
  newest_.resize(accounts_.size());
  newest_[number] = ++blocks_so_far_;
  grown_ns_ = now_ns;
  return {.birth = birth->second, .size = size, .number = blocks_so_far_};
}

void Ledger::add_row(const Block& block, std::uint64_t size, bool is_whole, std::int64_t freed_ns, bool is_temporary) {
  const std::int64_t end = freed_ns * 2 + (is_temporary ? 1 : 0);
  const auto [position, is_new] = row_index_.try_emplace({block.birth, end}, static_cast<std::uint32_t>(rows_.size()));
  if (is_new) {
    const auto& [account, time_ns] = births_[block.birth];
    AllocationRow& row = rows_.emplace_back(profile::row_from(accounts_.source(account)));
    row.time_ns = time_ns;
    row.freed_ns = freed_ns;
    row.is_temporary = is_temporary;
  }
  rows_[position->second].size += size;
  if (is_whole) rows_[position->second].blocks += 1;
}

void Ledger::gone(const Block& block, std::uint64_t size, bool is_whole, std::int64_t now_ns) {
  const std::uint32_t account = births_[block.birth].first;
  accounts_.gone(account, is_whole ? 1U : 0U, size, grown_ns_);
  add_row(block, size, is_whole, now_ns, newest_[account] == block.number);
}

void Ledger::allocate(const Site& site, std::uint64_t address, std::uint64_t size, std::int64_t now_ns) {
  free(address, now_ns);
  blocks_.emplace(address, born(site, size, now_ns));
}

void Ledger::free(std::uint64_t address, std::int64_t now_ns) {
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return;
  gone(found->second, found->second.size, true, now_ns);
  blocks_.erase(found);
}

void Ledger::map(const Site& site, std::uint64_t address, std::uint64_t size, std::int64_t now_ns) {
  unmap(address, size, now_ns);
  if (size != 0 && address <= UINT64_MAX - size) mappings_.emplace(address, born(site, size, now_ns));
}

bool Ledger::take_last_part(const Block& block) {
  const auto more = more_parts_.find(block.number);
  if (more == more_parts_.end()) return true;
  if (--more->second == 0) more_parts_.erase(more);
  return false;
}

void Ledger::unmap(std::uint64_t address, std::uint64_t size, std::int64_t now_ns) {
  const std::uint64_t end = size > UINT64_MAX - address ? UINT64_MAX : address + size;
  auto at = mappings_.upper_bound(address);
  if (at != mappings_.begin()) --at;
  while (at != mappings_.end() && at->first < end) {
    const std::uint64_t start = at->first;
    const Block block = at->second;
    const std::uint64_t block_end = start + block.size;
    if (block_end <= address) {
      ++at;
      continue;
    }
    const std::uint64_t from = std::max(start, address);
    const std::uint64_t to = std::min(block_end, end);
    const bool has_head = from > start, has_tail = to < block_end;
    if (has_head && has_tail) ++more_parts_[block.number];
    gone(block, to - from, !has_head && !has_tail && take_last_part(block), now_ns);
    at = mappings_.erase(at);
    if (has_head) mappings_.emplace(start, Block{block.birth, from - start, block.number});
    if (has_tail) at = mappings_.emplace(to, Block{block.birth, block_end - to, block.number}).first;
  }
}

void Ledger::finish(profile::Profile& profile, std::int64_t end_ns) {
  const std::int64_t peak_ns = accounts_.put_peak(profile.peak_allocations, grown_ns_);
  for (const auto& [address, block] : blocks_) add_row(block, block.size, true, AllocationRow::kAlive, false);
  for (const auto& [address, block] : mappings_)
    add_row(block, block.size, take_last_part(block), AllocationRow::kAlive, false);
  const auto by_time = [](const AllocationRow& a, const AllocationRow& b) { return a.time_ns < b.time_ns; };
  std::stable_sort(rows_.begin(), rows_.end(), by_time);
  profile.allocations = std::move(rows_);
  profile.is_exact = true;
  profile.peak_ns = std::min(peak_ns, end_ns);
}

}  // namespace plimsoll::formats::memray
