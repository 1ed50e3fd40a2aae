#include "alloc/ledger.h"

#include <utility>

namespace plimsoll::alloc {

// The first site is where blocks go when there is no room for another site.
Ledger::Ledger(const std::atomic<std::int64_t>& clock) : clock_(clock), sites_(1), large_bytes_(1) {
  sites_.front().large = 0;
}

void Ledger::add_site(std::uint32_t stack, Domain domain, std::size_t size) {
  Site site;
  site.stack = stack;
  site.domain = domain;
  site.version = version_;  // nothing of it was alive at the peak
  if (size > kLargestSmall) {
    large_bytes_.emplace_back();
    site.large = static_cast<std::uint32_t>(large_bytes_.size() - 1);
  } else {
    site.size = static_cast<std::uint16_t>(size);
  }
  if (changed_.capacity() <= sites_.size()) changed_.reserve(2 * sites_.size());  // so that note_change finds room
  sites_.push_back(site);
}

void Ledger::note_change(Site& site) {
  site.is_changed = true;
  changed_.push_back(static_cast<std::uint32_t>(&site - sites_.data()));
}

BlockBooks::Token Ledger::allocated(std::uint32_t stack, Domain domain, const void* at, std::size_t size) {
  const std::uint32_t number =
      numbers_.find(stack, domain, size, [&](std::uint32_t) { add_site(stack, domain, size); });
  Site& site = sites_[number];
  if (site.large != kNone) large_sizes_[reinterpret_cast<std::uintptr_t>(at)] = size;
  touch(site);
  if (site.large != kNone) {
    LargeBytes& bytes = large_bytes_[site.large];
    bytes.live += static_cast<std::int64_t>(size);
    bytes.born += static_cast<std::int64_t>(size);
  }
  ++site.live;
  ++site.born;
  site.last = mark_of(at);
  live_bytes_ += size;
  return token_of(number, epoch_);
}

void Ledger::ended(Token token, const void* at, Fate fate) {
  Site& site = sites_[token & (kMostSites - 1)];
  std::uint64_t size = site.size;
  if (site.large != kNone) {
    const auto found = large_sizes_.find(reinterpret_cast<std::uintptr_t>(at));
    if (found == large_sizes_.end()) return;
    size = found->second;
    large_sizes_.erase(found);
  }
  note_peak();
  touch(site);
  const bool is_last = site.last == mark_of(at);
  if (is_last) site.last = 0;
  const bool at_once = is_last && fate == Fate::kFreed;
  const auto bytes = static_cast<std::int64_t>(size);
  if (token >> kSiteBits == epoch_) [[likely]] {
    ++site.freed;
    site.at_once += at_once ? 1 : 0;
    if (site.large != kNone) {
      large_bytes_[site.large].freed += bytes;
      large_bytes_[site.large].at_once += at_once ? bytes : 0;
    }
  } else {
    Sum& sum = freed_later_[std::uint64_t{token} << 1U | (at_once ? 1U : 0U)];
    ++sum.blocks;
    sum.bytes += bytes;
  }
  --site.live;
  if (site.large != kNone) large_bytes_[site.large].live -= bytes;
  live_bytes_ -= size;
}

BlockBooks::Facts Ledger::facts_of(Token token, const void* at) const {
  const Site& site = sites_[token & (kMostSites - 1)];
  Facts facts{site.stack, site.domain, static_cast<std::uint8_t>(token >> kSiteBits), site.size};
  if (site.large == kNone) return facts;
  const auto found = large_sizes_.find(reinterpret_cast<std::uintptr_t>(at));
  if (found != large_sizes_.end()) facts.size = static_cast<std::size_t>(found->second);
  return facts;
}

std::uint32_t Ledger::stack_of(Token token) const { return sites_[token & (kMostSites - 1)].stack; }

Ledger::Sum Ledger::peak_of(const Site& site) const {
  const bool is_kept = site.version == version_;
  const std::int64_t blocks = is_kept ? site.at_peak : site.live;
  if (site.large == kNone) return {blocks, blocks * site.size};
  const LargeBytes& bytes = large_bytes_[site.large];
  return {blocks, is_kept ? bytes.at_peak : bytes.live};
}

void Ledger::put_site(std::vector<LedgerRow>& rows, Site& site) {
  using Kind = LedgerRow::Kind;
  LargeBytes bytes{0, site.born * site.size, site.freed * site.size, site.at_once * site.size, 0};
  if (site.large != kNone) bytes = large_bytes_[site.large];
  const auto put = [&](Kind kind, std::int64_t blocks, std::int64_t sum) {
    if (blocks != 0) rows.push_back({kind, site.domain, epoch_, site.stack, blocks, sum});
  };
  put(Kind::kBorn, site.born, bytes.born);
  put(Kind::kFreed, site.freed - site.at_once, bytes.freed - bytes.at_once);
  put(Kind::kFreedAtOnce, site.at_once, bytes.at_once);
  site.born = site.freed = site.at_once = 0;
  if (site.large != kNone) {
    LargeBytes& counts = large_bytes_[site.large];
    counts.born = counts.freed = counts.at_once = 0;
  }
  site.is_changed = false;
}

void Ledger::put_peak(std::vector<LedgerRow>& rows) {
  note_peak();
  if (told_version_ == version_) return;
  told_version_ = version_;
  told_peak_.resize(sites_.size());
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    const Site& site = sites_[i];
    const Sum now = peak_of(site);
    const Sum told = std::exchange(told_peak_[i], now);
    if (now.blocks != told.blocks || now.bytes != told.bytes)
      rows.push_back(
          {LedgerRow::Kind::kPeak, site.domain, epoch_, site.stack, now.blocks - told.blocks, now.bytes - told.bytes});
  }
}

std::vector<LedgerRow> Ledger::close_epoch() {
  std::vector<LedgerRow> rows;
  for (const std::uint32_t number : changed_) put_site(rows, sites_[number]);
  changed_.clear();
  for (const auto& [key, sum] : freed_later_) {
    const auto token = static_cast<Token>(key >> 1U);
    const Site& site = sites_[token & (kMostSites - 1)];
    const auto kind = (key & 1U) != 0 ? LedgerRow::Kind::kFreedAtOnce : LedgerRow::Kind::kFreed;
    rows.push_back(
        {kind, site.domain, static_cast<std::uint8_t>(token >> kSiteBits), site.stack, sum.blocks, sum.bytes});
  }
  freed_later_.clear();
  put_peak(rows);
  if (epoch_ != kLastEpoch) ++epoch_;
  return rows;
}

}  // namespace plimsoll::alloc
