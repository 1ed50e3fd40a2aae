// native/rule.h: how to get from one frame of machine code to its caller's. What is left of a module's .eh_frame once
// it is compiled.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "native/machine.h"

namespace plimsoll::native {

// Which rule of a RulePool.
using RuleIndex = std::uint16_t;

// Why an unwinding ended. Everything but kComplete and kTruncated: the frames so far are true, the others are missing.
enum class UnwindStop : std::uint8_t {
  kComplete,    // arrived where the thread began
  kTruncated,   // `out` is full
  kNoModule,    // the code is of no file that is known: made at run time, or loaded a moment ago
  kNoTable,     // its file has no .eh_frame, or a damaged one
  kNoRule,      // its file says nothing about this function: assembly without directives, most likely
  kExpression,  // its rule is a DWARF expression of a kind that is not known here
  kRegister,    // its rule needs a register that is not known any more
  kUnreadable,  // its stack could not be read
  kStuck,       // its caller's frame would not be further out
};
inline constexpr std::size_t kUnwindStopCount = 9;

// The reason in words, for counters and messages.
constexpr const char* text(UnwindStop stop) {
  constexpr std::array<const char*, kUnwindStopCount> kTexts{"complete",
                                                             "stack too deep",
                                                             "code of no known file",
                                                             "file without unwind table",
                                                             "no unwind rule",
                                                             "unwind rule not understood",
                                                             "register not known",
                                                             "stack unreadable",
                                                             "frames do not lead outwards"};
  return kTexts[static_cast<std::size_t>(stop)];
}

// The way out of a frame. Its canonical frame address (CFA) is what the stack pointer was before the call.
struct Rule {
  // How the CFA is found.
  enum class Kind : std::uint8_t {
    kCannot,     // see `stop`
    kOutermost,  // there is no caller
    kRegister,   // CFA = base + offset
    kLoad,       // CFA = *(base + offset) + extra
    kPlt,        // CFA = stack pointer + offset, and 8 more from byte `extra` of 16 on; x86-64 only
    kSignal,     // a signal's frame: the kernel has left all registers on the stack
  } kind = Kind::kCannot;
  UnwindStop stop = UnwindStop::kNoRule;
  std::uint8_t base = kStackPointer;
  // Where the caller's frame pointer is.
  enum class Saved : std::uint8_t {
    kSame,            // still in its register
    kAtCfa,           // at CFA + frame_pointer_offset
    kAtFramePointer,  // at the frame pointer + frame_pointer_offset
    kAtStackPointer,  // at the stack pointer + frame_pointer_offset
    kLost,
  } frame_pointer = Saved::kSame;
  std::int32_t offset = 0;
  std::int32_t extra = 0;
  std::int32_t frame_pointer_offset = 0;
  // Where the return address is, from the CFA; 0: in its register, still.
  std::int32_t return_offset = kReturnPlace;

  static constexpr Rule cannot(UnwindStop why) {
    Rule rule;
    rule.stop = why;
    return rule;
  }
  friend constexpr bool operator==(const Rule& a, const Rule& b) {
    return a.kind == b.kind && a.stop == b.stop && a.base == b.base && a.frame_pointer == b.frame_pointer &&
           a.offset == b.offset && a.extra == b.extra && a.frame_pointer_offset == b.frame_pointer_offset &&
           a.return_offset == b.return_offset;
  }
};
static_assert(sizeof(Rule) == 20);

}  // namespace plimsoll::native
