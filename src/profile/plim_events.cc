#include "profile/plim_events.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/allocation_words.h"
#include "profile/plim_format.h"

namespace plimsoll::profile {
namespace {

// What the column of kinds has: one of these, or from kFirstSite on a site that a block was allocated at.
constexpr std::uint64_t kFreed = 0;
constexpr std::uint64_t kMoved = 1;
constexpr std::uint64_t kTime = 2;
constexpr std::uint64_t kFirstSite = 3;

constexpr std::size_t kMostSlots = std::size_t{1} << 28U;
constexpr std::size_t kMostSites = std::size_t{1} << 28U;
constexpr std::int64_t kLongest = std::int64_t{1} << 50U;  // microseconds
constexpr std::int64_t kMostAllocated = std::int64_t{1} << 60U;

// The end of a block, in 32 bits: how long it lived, to a sixteenth and never less than it did; or if that is many
// stretches of birth, the one that it ended in.
constexpr std::uint32_t kWasMoved = std::uint32_t{1} << 31U;
constexpr std::uint32_t kIsStretch = std::uint32_t{1} << 30U;
constexpr std::uint32_t kEndMask = kIsStretch - 1;
constexpr std::uint64_t kManyStretches = 16;

std::uint32_t rounded(std::uint64_t us) {
  if (us < 32) return static_cast<std::uint32_t>(us);
  const auto shift = static_cast<unsigned>(std::bit_width(us)) - 5U;
  const std::uint64_t up = (us + (std::uint64_t{1} << shift) - 1) >> shift;
  return static_cast<std::uint32_t>(std::uint64_t{shift} * 16 + up);
}

std::int64_t unrounded(std::uint32_t number) {
  if (number < 32) return number;
  const std::uint32_t shift = (number - 16) / 16;
  return std::int64_t{number - shift * 16} << shift;
}

}  // namespace

void EventEncoder::put_site(std::string& out, const AllocationEvents::Site& site, std::int64_t stack) {
  put_varint(out, site.thread.index());
  put_varint(out, static_cast<std::uint64_t>(stack));
  put_varint(out, site.domain);
  put_varint(out, site.size);
}

void EventEncoder::put_events(std::string& out, std::span<const std::uint32_t> words, std::int64_t start_us) {
  // Columns, as equal things compress better together. The long ones have room for the longest numbers of 32 bits:
  // there are many millions of these.
  Column::End kinds = kinds_.begin(words.size()), slots = slots_.begin(words.size());
  std::string sizes, times;
  std::int64_t last = last_slot_;
  const auto put_block = [&](AllocationEvent event, std::uint64_t value) {
    const bool is_end = event != AllocationEvent::kAllocated;
    kinds.put(is_end ? (event == AllocationEvent::kFreed ? kFreed : kMoved) : kFirstSite + value);
    const auto slot = static_cast<std::int64_t>(value);
    slots.put_if(is_end, zigzag(slot - last));
    last = is_end ? slot : last;
  };
  const auto put_other = [&](AllocationEvent event, std::uint64_t value) {
    if (event == AllocationEvent::kSize) return put_varint(sizes, value);
    // The first time goes from the clock's zero.
    const std::int64_t before = std::exchange(has_time_, true) ? 0 : start_us;
    kinds.put(kTime);
    put_varint(times, static_cast<std::uint64_t>(std::max<std::int64_t>(0, static_cast<std::int64_t>(value) - before)));
  };
  AllocationWords::for_each(words, put_block, put_other);
  last_slot_ = last;
  for (const std::string_view column :
       {kinds_.bytes(kinds), slots_.bytes(slots), std::string_view(sizes), std::string_view(times)})
    put_bytes(out, column);
}

bool EventReplay::add_site(const AllocationEvents::Site& site) {
  if (sites_.size() == kMostSites) return false;
  sites_.push_back({accounts_.number_of({site.thread, site.stack, site.domain}), site.size});
  last_rows_.resize(accounts_.size());
  return true;
}

bool EventReplay::replay(VarintCursor& section) {
  VarintCursor kinds(section.bytes());
  VarintCursor slots(section.bytes());
  VarintCursor sizes(section.bytes());
  VarintCursor times(section.bytes());
  if (section.failed()) return false;
  while (!kinds.at_end()) {
    const std::uint64_t kind = kinds.varint();
    bool is_good = !kinds.failed();
    if (kind >= kFirstSite) {
      is_good = is_good && allocate(kind - kFirstSite, sizes);
    } else if (kind == kTime) {
      is_good = is_good && pass_time(times.varint());
    } else {
      if (__builtin_add_overflow(last_slot_, slots.signed_varint(), &last_slot_)) return false;
      is_good = is_good && end_block(last_slot_, kind == kFreed);
    }
    if (!is_good || slots.failed() || sizes.failed() || times.failed()) return false;
  }
  return true;
}

bool EventReplay::pass_time(std::uint64_t us) {
  if (us > static_cast<std::uint64_t>(kLongest) || now_us_ + static_cast<std::int64_t>(us) > kLongest) return false;
  now_us_ += static_cast<std::int64_t>(us);
  while (stretch_of(now_us_) > kEndMask) coarsen();
  return true;
}

bool EventReplay::allocate(std::uint64_t number, VarintCursor& sizes) {
  if (number >= sites_.size()) return false;
  const SiteFacts& site = sites_[number];
  const std::uint64_t size = site.size != 0 ? site.size : sizes.bounded(plim::kLargestBlock);
  allocated_bytes_ += static_cast<std::int64_t>(size);
  if (allocated_bytes_ > kMostAllocated) return false;
  std::uint32_t slot = free_slot_;
  if (slot == kNone) {
    if (slots_.size() == kMostSlots) return false;
    slot = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    free_slot_ = slots_[slot].next;
  }
  slots_[slot].site = static_cast<std::uint32_t>(number);
  slots_[slot].born_us = now_us_;
  if (site.size == 0) told_sizes_[slot] = static_cast<std::int64_t>(size);
  accounts_.born(site.account, size);
  return true;
}

std::int64_t EventReplay::size_of(std::uint32_t slot) const {
  const std::uint32_t size = sites_[slots_[slot].site].size;
  return size != 0 ? size : told_sizes_.find(slot)->second;
}

bool EventReplay::end_block(std::int64_t number, bool is_freed) {
  if (number < 0 || static_cast<std::uint64_t>(number) >= slots_.size()) return false;
  const auto slot = static_cast<std::uint32_t>(number);
  Slot& block = slots_[slot];
  if (block.site == kNone) return false;
  const std::int64_t size = size_of(slot);
  const SiteFacts& site = sites_[block.site];
  if (site.size == 0) told_sizes_.erase(slot);
  accounts_.gone(site.account, 1, static_cast<std::uint64_t>(size), now_us_ * 1000);
  add_row(site.account, stretch_of(block.born_us) << 32U | end_of(block.born_us, is_freed), {1, size});
  block.site = kNone;
  block.next = std::exchange(free_slot_, slot);
  return true;
}

std::uint32_t EventReplay::end_of(std::int64_t born_us, bool is_freed) const {
  const auto lived = static_cast<std::uint64_t>(now_us_ - born_us);
  const bool is_long = lived >> shift_ >= kManyStretches;
  const std::uint32_t end = is_long ? kIsStretch | static_cast<std::uint32_t>(stretch_of(now_us_)) : rounded(lived);
  return end | (is_freed ? 0 : kWasMoved);
}

void EventReplay::add_row(std::uint32_t number, std::uint64_t when, const Sum& sum) {
  LastRow& last = last_rows_[number];
  if (last.when != when) {
    const auto [found, is_new] = row_index_.try_emplace(RowKey{number, when}, rows_.size());
    last = {when, found->second};
    if (is_new) {
      rows_.push_back({number, when, sum});
      if (rows_.size() > most_rows_) coarsen();
      return;
    }
  }
  rows_[last.row].sum.add(sum.blocks, sum.bytes);
}

void EventReplay::coarsen() {
  ++shift_;
  const std::vector<Row> before = std::exchange(rows_, {});
  row_index_.clear();
  last_rows_.assign(last_rows_.size(), {});
  const std::size_t most = std::exchange(most_rows_, before.size() + 1);
  for (const Row& row : before) {
    auto end = static_cast<std::uint32_t>(row.when);
    if ((end & kIsStretch) != 0) end = (end & ~kEndMask) | (end & kEndMask) >> 1U;
    add_row(row.account, row.when >> 33U << 32U | end, row.sum);
  }
  // Where that does not help any more, there are so many stacks.
  most_rows_ = rows_.size() > most / 4 * 3 ? most * 2 : most;
}

void EventReplay::set_type(std::uint64_t slot, StringId type) {
  if (slot < slots_.size() && slots_[slot].site != kNone) types_[static_cast<std::uint32_t>(slot)] = type;
}

AllocationRow EventReplay::row_of(std::uint32_t account, std::uint64_t when, const Sum& sum) const {
  AllocationRow row = row_from(accounts_.source(account));
  row.time_ns = static_cast<std::int64_t>(when >> 32U << shift_) * 1000;
  row.blocks = static_cast<std::uint64_t>(sum.blocks);
  row.size = static_cast<std::uint64_t>(sum.bytes);
  return row;
}

void EventReplay::put_living(Profile& profile) const {
  RowIndex index;
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    const Slot& block = slots_[slot];
    if (block.site == kNone) continue;
    const auto found_type = types_.find(slot);
    const StringId type = found_type == types_.end() ? StringId{} : found_type->second;
    const std::uint32_t account = sites_[block.site].account;
    const std::uint64_t birth = stretch_of(block.born_us) << 32U;
    const std::uint64_t when = birth | (type.is_none() ? 0 : type.index() + 1U);
    const auto [found, is_new] = index.try_emplace(RowKey{account, when}, profile.allocations.size());
    if (is_new) {
      profile.allocations.push_back(row_of(account, when, {}));
      profile.allocations.back().type = type;
    }
    AllocationRow& row = profile.allocations[found->second];
    ++row.blocks;
    row.size += static_cast<std::uint64_t>(size_of(slot));
  }
}

void EventReplay::finish(Profile& profile) {
  if (sites_.empty()) return;
  for (const Row& one : rows_) {
    AllocationRow row = row_of(one.account, one.when, one.sum);
    const auto end = static_cast<std::uint32_t>(one.when);
    const bool is_stretch = (end & kIsStretch) != 0;
    row.freed_ns =
        is_stretch ? std::int64_t{end & kEndMask} * 1000 << shift_ : row.time_ns + unrounded(end & kEndMask) * 1000;
    row.is_temporary = (end & kWasMoved) == 0;
    profile.allocations.push_back(row);
  }
  put_living(profile);
  profile.peak_ns = accounts_.put_peak(profile.peak_allocations, now_us_ * 1000);
  std::stable_sort(profile.allocations.begin(), profile.allocations.end(),
                   [](const AllocationRow& a, const AllocationRow& b) { return a.time_ns < b.time_ns; });
}

}  // namespace plimsoll::profile
