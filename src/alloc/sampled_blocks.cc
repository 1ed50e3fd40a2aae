#include "alloc/sampled_blocks.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "alloc/reserved_memory.h"
#include "os/available_memory.h"

namespace plimsoll::alloc {

SampledBlocks::SampledBlocks(std::size_t slots) {
  // A limit of address space may leave room for fewer. Most of it should be left to the program then.
  const std::uint64_t most = os::address_space_left() / 16;
  for (; slots > 0; slots /= 4) {
    if (slots * kSlotBytes > most) continue;
    void* region = reserve_addresses(slots * kSlotBytes);
    if (region == nullptr) continue;
    region_ = static_cast<char*>(region);
    region_bytes_ = slots * kSlotBytes;
    // No transparent huge pages: a few blocks would take two megabytes.
    ::madvise(region, region_bytes_, MADV_NOHUGEPAGE);
    return;
  }
}

SampledBlocks::~SampledBlocks() {
  if (region_ != nullptr) ::munmap(region_, region_bytes_);
}

void SampledBlocks::keep_addresses(std::uint64_t bytes) {
  const std::size_t wanted =
      std::max<std::size_t>(std::min<std::uint64_t>(bytes, region_bytes_), touched_ * kSlotBytes);
  const std::size_t kept = (wanted + kStep - 1) / kStep * kStep;
  if (kept >= region_bytes_) return;
  ::munmap(region_ + kept, region_bytes_ - kept);
  region_bytes_ = kept;
  open_bytes_ = std::min(open_bytes_, kept);
}

bool SampledBlocks::open_slot() {
  const std::size_t needed = (touched_ + 1) * kSlotBytes;
  if (needed <= open_bytes_) return true;
  if (needed > region_bytes_) return false;
  const std::size_t wanted = next_opened(open_bytes_, region_bytes_, kStep, kStep);
  if (!make_memory(region_, wanted)) return false;
  open_bytes_ = wanted;
  return true;
}

void* SampledBlocks::place(const SampledBlock& block) noexcept {
  if (block.size > kSlotBytes) return nullptr;
  std::size_t number = 0;
  if (first_free_ != 0) {
    number = first_free_ - 1;
    first_free_ = slots_[number].next_free;
  } else {
    if (!open_slot()) return nullptr;
    try {
      slots_.emplace_back();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    number = touched_++;
  }
  slots_[number].block = block;
  slots_[number].is_used = true;
  ++living_small_;
  return region_ + number * kSlotBytes;
}

bool SampledBlocks::track(const void* at, const SampledBlock& block) noexcept {
  try {
    if (large_.insert_or_assign(reinterpret_cast<std::uintptr_t>(at), block).second)
      filter_[filter_row(at)].fetch_add(1, std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

std::optional<SampledBlock> SampledBlocks::find(const void* at) const {
  if (is_small(at)) return slots_[slot_of(at)].block;
  const auto found = large_.find(reinterpret_cast<std::uintptr_t>(at));
  return found == large_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<SampledBlock> SampledBlocks::find_living(const void* at) const {
  if (!is_small(at)) return find(at);
  const std::size_t number = slot_of(at);
  const bool lives = number < touched_ && slots_[number].is_used && at == region_ + number * kSlotBytes;
  return lives ? std::optional(slots_[number].block) : std::nullopt;
}

void SampledBlocks::forget(const void* at) {
  if (!is_small(at)) {
    if (large_.erase(reinterpret_cast<std::uintptr_t>(at)) != 0)
      filter_[filter_row(at)].fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  Slot& slot = slots_[slot_of(at)];
  slot.is_used = false;
  slot.next_free = first_free_;
  first_free_ = static_cast<std::uint32_t>(slot_of(at)) + 1;
  --living_small_;
}

void SampledBlocks::forget_large() {
  large_.clear();
  for (std::atomic<std::uint32_t>& row : filter_) row.store(0, std::memory_order_relaxed);
}

}  // namespace plimsoll::alloc
