// base/allocation_words.h: what a program allocates and frees, a 32-bit word for each, in the order in which it did.
//
// Blocks are known by slots. A block takes the slot that was given back last, or a new one, numbered on: so a word need
// not say which, and blocks that come and go look alike each time. A word that allocates has the site: a stack, an
// allocator, and a size, unless that is told before.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

// What happened.
enum class AllocationEvent : std::uint8_t {
  kAllocated,  // value: the site
  kFreed,      // value: the slot
  kMoved,      // likewise: by realloc, what was in the block lives on in another
  kTime,       // value: so many microseconds have gone by
  kSize,       // value: of the next block, whose site has no one size
};

// Makes words of events, and takes them apart again. Nothing allocates but `put` in its vector.
class AllocationWords {
 public:
  static constexpr std::uint32_t kMostValue = (std::uint32_t{1} << 30U) - 1;  // of sites and slots
  static constexpr std::size_t kMostWords = 2;                                // that an event takes

  static void put(std::vector<std::uint32_t>& words, AllocationEvent event, std::uint64_t value) {
    std::array<std::uint32_t, kMostWords> one{};
    words.insert(words.end(), one.data(), write(one.data(), event, value));
  }
  // Where there is room: returns the end of what was written.
  static std::uint32_t* write(std::uint32_t* out, AllocationEvent event, std::uint64_t value) {
    switch (event) {
      case AllocationEvent::kAllocated:
      case AllocationEvent::kFreed:
      case AllocationEvent::kMoved:
        *out++ = static_cast<std::uint32_t>(event) << kShift | static_cast<std::uint32_t>(value);
        return out;
      case AllocationEvent::kTime:
      case AllocationEvent::kSize: break;
    }
    // Two words: 28 and 32 bits.
    const std::uint32_t is_size = event == AllocationEvent::kSize ? kSizeBit : 0;
    *out++ = kWide << kShift | is_size | (static_cast<std::uint32_t>(value >> 32U) & (kSizeBit - 1));
    *out++ = static_cast<std::uint32_t>(value);
    return out;
  }

  // visit(AllocationEvent, std::uint64_t value) for each: `visit_block` where a block begins or ends, which most are.
  template <typename VisitBlock, typename VisitOther>
  static void for_each(std::span<const std::uint32_t> words, VisitBlock visit_block, VisitOther visit_other) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::uint32_t word = words[i];
      if (word >> kShift != kWide) [[likely]] {
        visit_block(static_cast<AllocationEvent>(word >> kShift), std::uint64_t{word & kMostValue});
      } else if (++i < words.size()) {
        const std::uint64_t value = std::uint64_t{word & (kSizeBit - 1)} << 32U | words[i];
        visit_other((word & kSizeBit) != 0 ? AllocationEvent::kSize : AllocationEvent::kTime, value);
      }
    }
  }
  template <typename Visit>
  static void for_each(std::span<const std::uint32_t> words, Visit visit) {
    for_each(words, visit, visit);
  }

 private:
  static constexpr unsigned kShift = 30;
  static constexpr std::uint32_t kWide = 3;
  static constexpr std::uint32_t kSizeBit = std::uint32_t{1} << 28U;
};

}  // namespace plimsoll
