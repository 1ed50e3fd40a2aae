#include "heap/address_set.h"

#include <algorithm>
#include <utility>

namespace plimsoll::heap {

AddressSet::Region* AddressSet::make_region(std::uint64_t address) {
  auto made = std::make_unique<Region>();
  made->start = address >> kRegionBits << kRegionBits;
  made->bits = Bits::zeros();
  Region* region = made.get();
  by_address_[address >> kRegionBits] = region;
  const auto is_before = [](const std::unique_ptr<Region>& a, const std::unique_ptr<Region>& b) {
    return a->start < b->start;
  };
  regions_.insert(std::upper_bound(regions_.begin(), regions_.end(), made, is_before), std::move(made));
  return region;
}

// A page that is read before it is written to is given twice: at first the one page of zeros that all share. To
// exchange it the kernel interrupts all CPUs that the process runs on, which takes some 20 us.
void AddressSet::begin_span(Region& region, std::size_t span) {
  std::fill_n(&region.bits[span * kSpanWords], kSpanWords, 0);
  region.is_used[span] = true;
}

void AddressSet::put_aside(Address address) {
  Region* region = find(raw(address));
  if (region == nullptr) return;
  const std::size_t granule = granule_of(raw(address));
  const std::size_t span = granule / kSpanGranules;
  if (!std::exchange(region->has_aside[span], true)) have_aside_.emplace_back(region, span);
  set(region->aside, granule);
}

bool AddressSet::take_put_aside(std::vector<Address>& out) {
  if (have_aside_.empty()) return false;
  const auto [region, span] = have_aside_.back();
  have_aside_.pop_back();
  region->has_aside[span] = false;
  const auto append = [&](Address address) { out.push_back(address); };
  visit_span(
      *region, [&aside = region->aside](std::size_t word) { return aside[word]; }, span, append);
  std::fill_n(&region->aside[span * kSpanWords], kSpanWords, 0);
  return true;
}

void AddressSet::free_aside() {
  if (!have_aside_.empty()) return;
  for (const auto& region : regions_) region->aside = {};
}

void AddressSet::seal() {
  free_aside();
  Node rank = 0;
  for (const auto& region : regions_) {
    region->before = decltype(region->before)::zeros();
    for (std::size_t span = 0; span < kSpans; ++span) {
      if (!region->is_used[span]) continue;
      region->first_rank[span] = rank;
      std::uint32_t before = 0;
      for (std::size_t word = span * kSpanWords; word < (span + 1) * kSpanWords; ++word) {
        region->before[word] = static_cast<std::uint16_t>(before);
        before += count_of_ones(region->bits[word]);
      }
      rank += before;
    }
  }
}

}  // namespace plimsoll::heap
