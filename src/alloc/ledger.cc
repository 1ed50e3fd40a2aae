#include "alloc/ledger.h"

#include <algorithm>
#include <utility>

namespace plimsoll::alloc {

// The first site is where blocks go when there is no room for another site.
Ledger::Ledger(const std::atomic<std::int64_t>& clock, std::uint32_t first_stamp)
    : stamp_(first_stamp),
      peak_stamp_(first_stamp),
      epoch_stamp_(first_stamp),
      told_stamp_(first_stamp),
      clock_(clock),
      large_bytes_(1) {
  rests_.extend(1);
  changed_.extend(1);
  sites_.push_back({0, Domain::kObject, kManySizes});
}

std::uint32_t Ledger::find_site(std::uint32_t stack, Domain domain, std::size_t size) {
  return numbers_.find(stack, SiteNumbers::kind_of(domain, size),
                       [&](std::uint32_t) { add_site(stack, domain, size); });
}

void Ledger::add_site(std::uint32_t stack, Domain domain, std::size_t size) {
  const std::size_t number = sites_.size();
  rests_.extend(number + 1);
  changed_.extend(number + 1);  // so that touch finds room
  if (size > kLargestSmall) {
    large_bytes_.emplace_back();
    rests_[number].large = static_cast<std::uint32_t>(large_bytes_.size() - 1);
  }
  sites_.push_back({stack, domain, size > kLargestSmall ? kManySizes : static_cast<std::uint32_t>(size)});
}

BlockBooks::Token Ledger::allocated(StackKey key, std::uint32_t stack, Domain domain, const void* at,
                                    std::size_t size) {
  const std::uint32_t number = find_site(stack, domain, size);
  const Token token = allocated_at(number, at, size);
  numbers_.note(key, SiteNumbers::kind_of(domain, size), number);
  return token;
}

BlockBooks::Token Ledger::allocated_at(std::uint32_t number, const void* at, std::size_t size) {
  Site& site = sites_[number];
  touch(site);
  if (site.has_many_sizes()) add_large(site, at, size);
  site.born += kOne;
  site.last = mark_of(at);
  below_peak_ -= static_cast<std::int64_t>(size);
  return number | epoch_bits_;
}

Ledger::Site& Ledger::about_to_end(Token token) {
  if (below_peak_ < 0) note_peak();
  Site& site = sites_[number_of(token)];
  touch(site);
  return site;
}

void Ledger::ended(Token token, const void* at, Fate fate) {
  Site& site = about_to_end(token);
  const bool at_once = site.last == mark_of(at) && fate == Fate::kFreed;
  if (site.has_many_sizes()) return ended_large(site, token, take_large(at), at_once);
  count_end(site, token, at_once, site.size());
  below_peak_ += site.size();
}

void Ledger::touch(Site& site) {
  const bool is_small = !site.has_many_sizes();
  std::uint32_t& stamp = is_small ? site.stamp : large_of(site).stamp;
  if (stamp == stamp_) return;
  if (stamp != 0 && stamp < peak_stamp_) {  // of a new one nothing was alive
    rest_of(site).at_peak = live_of(site);
    if (!is_small) large_of(site).at_peak = large_of(site).live;
  }
  if (stamp < epoch_stamp_) changed_[changed_count_++] = index_of(site);
  stamp = stamp_;
}

void Ledger::number_stamps_anew() {
  const auto [low, high] = std::minmax(peak_stamp_, epoch_stamp_);
  const auto anew = [low = low, high = high](std::uint32_t stamp) -> std::uint32_t {
    if (stamp == 0) return 0;
    return stamp < low ? 1 : stamp < high ? 2 : 3;
  };
  for (Site& site : sites_) site.stamp = anew(site.stamp);
  for (LargeBytes& large : large_bytes_) large.stamp = anew(large.stamp);
  told_stamp_ = told_stamp_ == peak_stamp_ ? anew(peak_stamp_) : 0;
  peak_stamp_ = anew(peak_stamp_);
  epoch_stamp_ = anew(epoch_stamp_);
  stamp_ = 3;
}

void Ledger::add_large(Site& site, const void* at, std::size_t size) {
  large_sizes_[reinterpret_cast<std::uintptr_t>(at)] = size;
  LargeBytes& bytes = large_of(site);
  bytes.live += static_cast<std::int64_t>(size);
  bytes.born += static_cast<std::int64_t>(size);
}

std::size_t Ledger::take_large(const void* at) noexcept {
  const auto found = large_sizes_.find(reinterpret_cast<std::uintptr_t>(at));
  if (found == large_sizes_.end()) return kUnknown;
  const std::size_t size = found->second;
  large_sizes_.erase(found);
  return size;
}

std::size_t Ledger::lift(Token token, const void* at) noexcept {
  const Site& site = sites_[number_of(token)];
  return site.has_many_sizes() ? take_large(at) : site.size();
}

void Ledger::moved(Token token, std::size_t size) {
  Site& site = about_to_end(token);
  if (site.has_many_sizes()) return ended_large(site, token, size, false);
  count_end(site, token, false, size);
  below_peak_ += static_cast<std::int64_t>(size);
}

void Ledger::put_back(Token token, const void* at, std::size_t size) {
  const Site& site = sites_[number_of(token)];
  if (site.has_many_sizes() && size != kUnknown) large_sizes_[reinterpret_cast<std::uintptr_t>(at)] = size;
}

void Ledger::ended_large(Site& site, Token token, std::size_t size, bool at_once) {
  if (size == kUnknown) return;
  count_end(site, token, at_once, size);
  LargeBytes& bytes = large_of(site);
  const auto signed_size = static_cast<std::int64_t>(size);
  bytes.live -= signed_size;
  if (epoch_of(token) == epoch()) {
    bytes.freed += signed_size;
    bytes.at_once += at_once ? signed_size : 0;
  }
  below_peak_ += static_cast<std::int64_t>(size);
}

void Ledger::count_end(Site& site, Token token, bool at_once, std::uint64_t bytes) {
  if (epoch_of(token) == epoch()) {
    site.freed += kOne;
    site.at_once += at_once ? kOne : 0;
    return;
  }
  Sum& sum = freed_later(token, at_once);
  ++sum.blocks;
  sum.bytes += static_cast<std::int64_t>(bytes);
  --rest_of(site).before;
}

Ledger::Sum& Ledger::freed_later(Token token, bool at_once) {
  const std::uint64_t key = key_of(token, at_once);
  std::uint32_t& last = last_freed_later_[place_of(key)];
  if (last < freed_later_.size() && freed_later_[last].key == key) return freed_later_[last].sum;
  if (freed_later_.size() == freed_later_.capacity()) freed_later_.reserve(2 * freed_later_.size() + 64);
  const auto [found, is_new] = freed_later_of_key_.try_emplace(key, static_cast<std::uint32_t>(freed_later_.size()));
  if (is_new) freed_later_.push_back({key, {}});
  last = found->second;
  return freed_later_[last].sum;
}

BlockBooks::Facts Ledger::facts_of(Token token, const void* at) const {
  const Site& site = sites_[number_of(token)];
  Facts facts{site.stack(), site.domain(), epoch_of(token), site.size()};
  if (!site.has_many_sizes()) return facts;
  facts.size = 0;
  const auto found = large_sizes_.find(reinterpret_cast<std::uintptr_t>(at));
  if (found != large_sizes_.end()) facts.size = static_cast<std::size_t>(found->second);
  return facts;
}

std::uint32_t Ledger::stack_of(Token token) const { return sites_[number_of(token)].stack(); }

Ledger::Sum Ledger::peak_of(const Site& site) const {
  const bool is_small = !site.has_many_sizes();
  const LargeBytes& bytes = large_bytes_[is_small ? 0 : rest_of(site).large];
  const bool is_kept = (is_small ? site.stamp : bytes.stamp) >= peak_stamp_;
  const std::int64_t blocks = is_kept ? rest_of(site).at_peak : live_of(site);
  if (is_small) return {blocks, blocks * site.size()};
  return {blocks, is_kept ? bytes.at_peak : bytes.live};
}

void Ledger::put_site(ExactRows& rows, Site& site) {
  const std::int64_t born = site.born_count(), freed = site.freed_count(), at_once = site.at_once_count();
  const bool is_small = !site.has_many_sizes();
  const std::int64_t size = site.size();
  LargeBytes bytes{0, born * size, freed * size, at_once * size, 0};
  if (!is_small) bytes = large_of(site);
  const auto put = [&](ExactChange change, std::int64_t blocks, std::int64_t sum) {
    if (blocks != 0) rows.push_back({change, site.domain(), epoch(), site.stack(), blocks, sum});
  };
  put(ExactChange::kBorn, born, bytes.born);
  put(ExactChange::kFreed, freed - at_once, bytes.freed - bytes.at_once);
  put(ExactChange::kFreedAtOnce, at_once, bytes.at_once);
  if (born != freed) rest_of(site).before += born - freed;
  site.reset_counts();
  if (is_small) return;
  LargeBytes& counts = large_of(site);
  counts.born = counts.freed = counts.at_once = 0;
}

void Ledger::put_peak(ExactRows& rows, std::int64_t at_ns) {
  if (below_peak_ < 0) note_peak(at_ns);
  if (told_stamp_ == peak_stamp_) return;
  told_stamp_ = peak_stamp_;
  told_peak_.extend(sites_.size());
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    const Site& site = sites_[i];
    const Sum now = peak_of(site);
    const Sum told = told_peak_[i];
    if (now == told) continue;
    rows.push_back(
        {ExactChange::kPeak, site.domain(), epoch(), site.stack(), now.blocks - told.blocks, now.bytes - told.bytes});
    told_peak_[i] = now;
  }
}

ExactRows Ledger::close_epoch(std::int64_t at_ns) {
  ExactRows rows;
  rows.reserve(2 * changed_count_ + freed_later_.size());
  for (std::size_t i = 0; i < changed_count_; ++i) put_site(rows, sites_[changed_[i]]);
  changed_count_ = 0;
  for (const auto& [key, sum] : freed_later_) {
    const auto token = static_cast<Token>(key >> 1U);
    const Site& site = sites_[number_of(token)];
    const auto change = (key & 1U) != 0 ? ExactChange::kFreedAtOnce : ExactChange::kFreed;
    rows.push_back({change, site.domain(), epoch_of(token), site.stack(), sum.blocks, sum.bytes});
  }
  freed_later_.clear();
  freed_later_of_key_.clear();
  put_peak(rows, at_ns);
  if (epoch() != kLastEpoch) epoch_bits_ += Token{1} << kSiteBits;
  epoch_stamp_ = next_stamp();
  return rows;
}

}  // namespace plimsoll::alloc
