// native/epilogue.h: the way out of code that has no unwind table, where it is about to return.
//
// Trampolines that are made at run time, like those of CPython for perf, call one function, take down their frame and
// return. A call returns to the first of the instructions that do so, and what is going to run says where everything
// is: no guess is made. Code that does anything else first has no such rule.
#pragma once

#include <optional>

#include "memory/reader.h"
#include "native/rule.h"

namespace plimsoll::native {
namespace internal {

// The instructions of x86-64 from an address on, one byte after the other. After one that cannot be read all are 0,
// which begins none that matter.
template <memory::Reader M>
class Bytes {
 public:
  Bytes(const M& memory, std::uint64_t at) : memory_(memory), at_(at) {}
  std::uint8_t next() {
    std::uint8_t byte = 0;
    return memory_.load(Address{at_++}, byte) ? byte : std::uint8_t{0};
  }
  std::int32_t next_number(int bytes) {
    std::uint32_t number = 0;
    for (int i = 0; i < bytes; ++i) number |= std::uint32_t{next()} << (8 * i);
    return bytes == 1 ? static_cast<std::int8_t>(number) : static_cast<std::int32_t>(number);
  }

 private:
  const M& memory_;
  std::uint64_t at_;
};

// What taking down a frame has come to: how far the stack pointer is from what it is counted from.
struct TakenDown {
  std::uint8_t base = kStackPointer;
  std::int32_t offset = 0;
  std::optional<std::int32_t> frame_pointer;  // where it was popped from
};

// One instruction with the prefix for 64 bits: `add rsp, N` or `mov rsp, rbp`.
template <memory::Reader M>
bool take_down_wide(Bytes<M>& code, TakenDown& down) {
  constexpr std::uint8_t kAddByte = 0x83, kAdd = 0x81, kToStackPointer = 0xc4, kMove = 0x89, kFromFramePointer = 0xec;
  const std::uint8_t operation = code.next(), operands = code.next();
  if (operation == kMove && operands == kFromFramePointer && !down.frame_pointer) {
    down = {kFramePointer, 0, std::nullopt};
    return true;
  }
  if ((operation != kAddByte && operation != kAdd) || operands != kToStackPointer) return false;
  constexpr std::int32_t kMost = 1 << 20;
  const std::int32_t size = code.next_number(operation == kAddByte ? 1 : 4);
  if (size < 0 || size > kMost) return false;
  down.offset += size;
  return true;
}

template <memory::Reader M>
std::optional<Rule> x86_epilogue(const M& memory, std::uint64_t pc) {
  constexpr std::uint8_t kReturn = 0xc3, kLeave = 0xc9, kPop = 0x58, kPopFramePointer = 0x5d, kPopStackPointer = 0x5c,
                         kLastPop = 0x5f, kWide = 0x48, kUpper = 0x41;
  constexpr std::int32_t kWord = 8;
  constexpr int kMostInstructions = 16;
  Bytes<M> code(memory, pc);
  TakenDown down;
  for (int i = 0; i < kMostInstructions; ++i) {
    const std::uint8_t first = code.next();
    if (first == kReturn) {
      Rule rule;
      rule.kind = Rule::Kind::kRegister;
      rule.base = down.base;
      rule.offset = down.offset + kWord;
      if (down.frame_pointer) {
        rule.frame_pointer = Rule::Saved::kAtCfa;
        rule.frame_pointer_offset = *down.frame_pointer - rule.offset;
      }
      return rule;
    }
    if (first == kWide) {
      if (!take_down_wide(code, down)) return std::nullopt;
    } else if (first == kLeave && !down.frame_pointer) {
      down = {kFramePointer, kWord, 0};
    } else {
      const bool is_upper = first == kUpper;
      const std::uint8_t pop = is_upper ? code.next() : first;
      if (pop < kPop || pop > kLastPop || (pop == kPopStackPointer && !is_upper)) return std::nullopt;
      if (pop == kPopFramePointer && !is_upper) down.frame_pointer = down.offset;
      down.offset += kWord;
    }
  }
  return std::nullopt;
}

// `ldp x29, x30, [sp], #N; ret`.
template <memory::Reader M>
std::optional<Rule> arm_epilogue(const M& memory, std::uint64_t pc) {
  constexpr std::uint32_t kLoadPair = 0xa8c07bfd, kLoadPairMask = 0xffc07fff, kReturn = 0xd65f03c0;
  constexpr std::uint32_t kMostWords = 0x3f, kWordsShift = 15;
  constexpr std::int32_t kWord = 8;
  std::uint32_t load = 0, back = 0;
  if (!memory.load(Address{pc}, load) || !memory.load(Address{pc + sizeof load}, back) || back != kReturn ||
      (load & kLoadPairMask) != kLoadPair)
    return std::nullopt;
  const std::uint32_t words = (load >> kWordsShift) & (2 * kMostWords + 1);
  if (words < 2 || words > kMostWords) return std::nullopt;
  Rule rule;
  rule.kind = Rule::Kind::kRegister;
  rule.offset = static_cast<std::int32_t>(words) * kWord;
  rule.frame_pointer = Rule::Saved::kAtCfa;
  rule.frame_pointer_offset = -rule.offset;
  rule.return_offset = kWord - rule.offset;
  return rule;
}

}  // namespace internal

// The rule at a place that a call returns to, if what follows takes down the frame and returns; none otherwise.
// Async-signal-safe if `memory` is, which need only have code.
template <memory::Reader M>
std::optional<Rule> rule_of_epilogue(const M& memory, std::uint64_t pc) {
  if constexpr (kReturnsByRegister)
    return internal::arm_epilogue(memory, pc);
  else
    return internal::x86_epilogue(memory, pc);
}

}  // namespace plimsoll::native
