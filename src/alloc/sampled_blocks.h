// alloc/sampled_blocks.h: which living blocks are samples.
//
// A small sampled block lives in a slot of a region of ours, so that one comparison of its address tells it from all
// others when it is freed. A larger one stays where its allocator put it, and is found by its address; a filter keeps
// nearly all others from being looked up.
#pragma once

#include <array>
#include <atomic>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace plimsoll::alloc {

// What is kept of a sampled block while it lives.
struct SampledBlock {
  std::uint64_t number = 0;   // of the sample
  std::uint64_t size = 0;     // as requested
  std::uint32_t session = 0;  // the recording it belongs to: an earlier one's blocks may still be alive
  std::uint32_t kind = 0;     // the caller's: which allocator it came from
};

// All sampled blocks of the process that are alive. is_small and may_be_large are for any thread; the caller serialises
// the rest.
class SampledBlocks {
 public:
  static constexpr std::size_t kSlotBytes = 512;  // the largest small block

  // Reserves addresses for `slots` small blocks; memory is used as they are. Fewer, if the system has no more to give;
  // without any, large blocks still can be tracked.
  explicit SampledBlocks(std::size_t slots);
  SampledBlocks(const SampledBlocks&) = delete;
  SampledBlocks& operator=(const SampledBlocks&) = delete;
  ~SampledBlocks();

  [[nodiscard]] bool is_small(const void* block) const {
    return static_cast<std::size_t>(static_cast<const char*>(block) - region_) < region_bytes_;
  }
  [[nodiscard]] bool may_be_large(const void* block) const {
    return filter_[filter_row(block)].load(std::memory_order_relaxed) != 0;
  }
  [[nodiscard]] bool may_be_sampled(const void* block) const { return is_small(block) || may_be_large(block); }

  // Gives addresses back that were never used, but for so many in all.
  void keep_addresses(std::uint64_t bytes);
  // A slot for a small block; nullptr if none is free.
  void* place(const SampledBlock& block) noexcept;
  // A block that lives elsewhere is sampled from now on. False if there is no memory to know it by.
  [[nodiscard]] bool track(const void* at, const SampledBlock& block) noexcept;
  // What is known of a block; nothing if it is not sampled.
  [[nodiscard]] std::optional<SampledBlock> find(const void* at) const;
  // Likewise of any address, also of one at which no block begins, or none that lives.
  [[nodiscard]] std::optional<SampledBlock> find_living(const void* at) const;
  // It is about to be freed; the slot of a small one is free from now on.
  void forget(const void* at);
  // Large ones may have been freed without a word.
  void forget_large();
  [[nodiscard]] std::size_t living() const { return living_small_ + large_.size(); }
  // visit(void* at, const SampledBlock&) for all that live.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (std::size_t i = 0; i < touched_; ++i)
      if (slots_[i].is_used) visit(static_cast<void*>(region_ + i * kSlotBytes), slots_[i].block);
    for (const auto& [at, block] : large_) visit(pointer_to<void>(Address{at}), block);
  }

 private:
  // A slot's facts, kept apart from the slot: the program may write over its end.
  struct Slot {
    SampledBlock block;
    std::uint32_t next_free = 0;  // number + 1
    bool is_used = false;
  };
  static constexpr std::size_t kStep = std::size_t{1} << 16U;  // whole pages of any system's
  static constexpr std::size_t kFilterRows = std::size_t{1} << 16U;
  static std::size_t filter_row(const void* block) {
    return static_cast<std::size_t>((reinterpret_cast<std::uintptr_t>(block) >> 4U) * 0x9e3779b97f4a7c15U >> 48U);
  }
  [[nodiscard]] std::size_t slot_of(const void* at) const {
    return static_cast<std::size_t>(static_cast<const char*>(at) - region_) / kSlotBytes;
  }

  // Whether the first slot that was never used is memory, or has become that now.
  bool open_slot();

  char* region_ = nullptr;
  std::size_t region_bytes_ = 0;
  std::size_t open_bytes_ = 0;  // from the region's beginning on: what is memory
  std::vector<Slot> slots_;     // of those touched so far
  std::size_t touched_ = 0;
  std::uint32_t first_free_ = 0;  // number + 1
  std::size_t living_small_ = 0;
  boost::unordered_flat_map<std::uintptr_t, SampledBlock> large_;
  std::array<std::atomic<std::uint32_t>, kFilterRows> filter_{};  // living large blocks by hash
};

}  // namespace plimsoll::alloc
