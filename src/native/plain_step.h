// native/plain_step.h: the way out of nearly every frame, in as many bits as are left beside its address in a cache.
#pragma once

#include <cstdint>

#include "native/rule.h"

namespace plimsoll::native {

// A rule, or where it is. The plain ones have the CFA at a multiple of 8 from the stack or the frame pointer, and the
// caller's frame pointer in its register or at a multiple of 8 below the CFA; the return address is where calls put it,
// or where they leave it in a register, saved beside the frame pointer, as `stp x29, x30` does. 0 is none.
class PlainStep {
 public:
  // Of a word of 64: the rest is the address, but for kCacheBits of it that the place in the cache tells.
  static constexpr unsigned kCacheBits = 12, kBits = 64 - (kAddressBits - kCacheBits);

  PlainStep() = default;
  explicit PlainStep(std::uint32_t bits) : bits_(bits) {}
  // Of `rule`, which is at `index` of the pool.
  PlainStep(const Rule& rule, RuleIndex index) : bits_(kIsIndex | std::uint32_t{index} << kIndexShift) {
    const std::int64_t saved = -std::int64_t{rule.frame_pointer_offset};
    const bool is_same = rule.frame_pointer == Rule::Saved::kSame;
    const bool is_at_cfa =
        rule.frame_pointer == Rule::Saved::kAtCfa && saved > 0 && saved % kWord == 0 && saved / kWord < kMostSaved;
    const bool has_plain_return = kReturnsByRegister
                                      ? is_at_cfa && rule.return_offset == kBeside - saved && saved != kBeside
                                      : rule.return_offset == kReturnPlace;
    const bool is_plain = rule.kind == Rule::Kind::kRegister && has_plain_return &&
                          (rule.base == kStackPointer || rule.base == kFramePointer) && rule.offset > 0 &&
                          rule.offset % kWord == 0 && rule.offset / kWord < kMostOffset && (is_same || is_at_cfa);
    if (!is_plain) return;
    bits_ = kIsPlain | (rule.base == kFramePointer ? kByFramePointer : 0U) |
            static_cast<std::uint32_t>(rule.offset / kWord) << kOffsetShift |
            (is_same ? 0U : static_cast<std::uint32_t>(saved / kWord) << kSavedShift);
  }

  [[nodiscard]] std::uint32_t bits() const { return bits_; }
  [[nodiscard]] bool is_none() const { return bits_ == 0; }
  [[nodiscard]] bool is_plain() const { return (bits_ & kIsPlain) != 0; }
  // Of one that is not plain.
  [[nodiscard]] RuleIndex index() const { return static_cast<RuleIndex>(bits_ >> kIndexShift); }
  // Of a plain one: whether the CFA is counted from the frame pointer, and the distances in bytes; 0: not saved.
  [[nodiscard]] bool is_by_frame_pointer() const { return (bits_ & kByFramePointer) != 0; }
  [[nodiscard]] std::uint64_t offset() const {
    return ((bits_ >> kOffsetShift) & (std::uint32_t{kMostOffset} - 1U)) * std::uint64_t{kWord};
  }
  [[nodiscard]] std::uint64_t saved() const { return (bits_ >> kSavedShift) * std::uint64_t{kWord}; }
  // Likewise, how far below the CFA the return address is.
  [[nodiscard]] std::uint64_t return_place() const { return kReturnsByRegister ? saved() - kBeside : kWord; }

 private:
  static constexpr std::uint32_t kIsPlain = 1, kIsIndex = 2, kByFramePointer = 4;
  static constexpr unsigned kIndexShift = 3, kOffsetShift = 3, kSavedShift = 16;
  static constexpr std::int32_t kWord = 8, kBeside = 8;
  static constexpr std::int32_t kMostOffset = 1 << (kSavedShift - kOffsetShift),
                                kMostSaved = 1 << (kBits - kSavedShift);
  std::uint32_t bits_ = 0;
};

}  // namespace plimsoll::native
