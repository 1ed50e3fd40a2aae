// native/unwind.h: the frames of machine code of one thread, innermost first. The one unwinder of Plimsoll.
//
// It runs in a signal handler on its own thread's stack: it allocates nothing, takes no lock, reads the stack through
// `memory`, follows nothing but rules that were compiled beforehand, and says why it stopped.
#pragma once

#include <cstdint>
#include <span>

#include "memory/reader.h"
#include "native/epilogue.h"
#include "native/module_map.h"
#include "native/registers.h"

namespace plimsoll::native {

// A frame as found: an instruction in it, the interrupted one or within the call that has not returned; and its CFA,
// where its caller's part of the stack begins. It has the stack from the CFA of the frame before to its own.
struct NativeFrame {
  Address instruction{};
  Address cfa{};  // null if not known, in a last frame only
};
static_assert(sizeof(NativeFrame) == 16);

// How many frames are in `out`, and why there are no more.
struct Unwind {
  std::uint32_t count = 0;
  UnwindStop stop = UnwindStop::kComplete;
};

// What of a thread's registers is known when an unwinding begins.
enum class Known : std::uint8_t {
  kAll,
  kPlaceOnly,  // the instruction and the stack pointer: all that the kernel tells of a thread that waits
  kCaller,     // where a call returns to, the stack pointer then, and the frame pointer
};

namespace internal {

// One frame's registers, as far as they are known.
struct Cursor {
  Registers registers;
  bool is_innermost = true;    // all registers are known
  bool is_interrupted = true;  // pc is an instruction that has not run, not one that a call returns to
  bool has_frame_pointer = true;
};

// Where `rule` says that the frame ends. kComplete if it could be found.
template <memory::Reader M>
UnwindStop find_cfa(const M& memory, const Rule& rule, const Cursor& at, std::uint64_t& cfa) {
  const bool is_known =
      at.is_innermost || rule.base == kStackPointer || (rule.base == kFramePointer && at.has_frame_pointer);
  if (!is_known) return UnwindStop::kRegister;
  cfa = at.registers.value[rule.base] + static_cast<std::uint64_t>(std::int64_t{rule.offset});
  if (rule.kind == Rule::Kind::kLoad) {
    if (!memory.load(Address{cfa}, cfa)) return UnwindStop::kUnreadable;
    cfa += static_cast<std::uint64_t>(std::int64_t{rule.extra});
  }
  if (rule.kind == Rule::Kind::kPlt && static_cast<std::int32_t>(at.registers.pc & 15U) >= rule.extra) cfa += 8;
  return UnwindStop::kComplete;
}

// Where the caller's frame pointer is saved.
inline std::uint64_t place_of_frame_pointer(const Rule& rule, const Cursor& at, std::uint64_t cfa) {
  std::uint64_t base = cfa;
  if (rule.frame_pointer == Rule::Saved::kAtFramePointer) base = at.registers.value[kFramePointer];
  if (rule.frame_pointer == Rule::Saved::kAtStackPointer) base = at.registers.value[kStackPointer];
  return base + static_cast<std::uint64_t>(std::int64_t{rule.frame_pointer_offset});
}

// Goes on to the caller of a frame that ends at `cfa`.
template <memory::Reader M>
UnwindStop step_out(const M& memory, const Rule& rule, std::uint64_t cfa, Cursor& at) {
  constexpr std::uint64_t kWord = 8;
  // A function that calls no others may have nothing on the stack, where a call leaves nothing there.
  const bool is_in_register = kReturnsByRegister && rule.return_offset == 0;
  if (is_in_register && !at.is_innermost) return UnwindStop::kRegister;
  const std::uint64_t least = at.registers.value[kStackPointer] + (is_in_register ? 0 : 1);
  if (cfa < least || cfa % kWord != 0) return UnwindStop::kStuck;
  if (rule.frame_pointer == Rule::Saved::kLost) {
    at.has_frame_pointer = false;
  } else if (rule.frame_pointer != Rule::Saved::kSame) {
    if (rule.frame_pointer == Rule::Saved::kAtFramePointer && !at.has_frame_pointer) return UnwindStop::kRegister;
    const Address place{place_of_frame_pointer(rule, at, cfa)};
    if (!memory.load(place, at.registers.value[kFramePointer])) return UnwindStop::kUnreadable;
    at.has_frame_pointer = true;
  }
  if (is_in_register)
    at.registers.pc = at.registers.value[kReturnAddress % kRegisters];
  else if (!memory.load(Address{cfa + static_cast<std::uint64_t>(std::int64_t{rule.return_offset})}, at.registers.pc))
    return UnwindStop::kUnreadable;
  at.registers.pc = without_signature(at.registers.pc);
  at.registers.value[kStackPointer] = cfa;
  at.is_innermost = at.is_interrupted = false;
  return UnwindStop::kComplete;
}

// Goes on by plain rules (PlainStep) as long as there are any, which is nearly always, with the few registers that they
// need in registers. False if that came to an end which `result` tells; else the next frame, if `out` has room for it,
// is for the rules that take more.
template <memory::Reader M>
bool step_plainly(const M& memory, const ModuleMap& modules, Cursor& at, std::span<NativeFrame> out, Unwind& result) {
  constexpr std::uint64_t kWord = 8;
  std::uint64_t pc = at.registers.pc;
  std::uint64_t stack_pointer = at.registers.value[kStackPointer];
  std::uint64_t frame_pointer = at.registers.value[kFramePointer];
  std::uint64_t back = at.is_interrupted ? 0 : 1;
  bool has_frame_pointer = at.has_frame_pointer;
  NativeFrame* const begin = out.data() + result.count;
  NativeFrame* const end = out.data() + out.size();
  NativeFrame* next = begin;
  UnwindStop stop = UnwindStop::kComplete;
  for (; next != end; ++next) {
    const PlainStep step = modules.step_at(pc - back);
    if (!step.is_plain() || (step.is_by_frame_pointer() && !has_frame_pointer)) break;
    const std::uint64_t cfa = (step.is_by_frame_pointer() ? frame_pointer : stack_pointer) + step.offset();
    *next = {Address{pc - back}, Address{}};
    if (cfa <= stack_pointer || cfa % kWord != 0)
      stop = UnwindStop::kStuck;
    else if ((step.saved() != 0 && !memory.load(Address{cfa - step.saved()}, frame_pointer)) ||
             !memory.load(Address{cfa - step.return_place()}, pc))
      stop = UnwindStop::kUnreadable;
    pc = without_signature(pc);
    if (stop != UnwindStop::kComplete) {
      ++next;
      break;
    }
    has_frame_pointer = has_frame_pointer || step.saved() != 0;
    next->cfa = Address{cfa};
    stack_pointer = cfa;
    back = 1;
  }
  result.count += static_cast<std::uint32_t>(next - begin);
  result.stop = stop;
  if (next == begin || stop != UnwindStop::kComplete) return stop == UnwindStop::kComplete;
  at.registers.pc = pc;
  at.registers.value[kStackPointer] = stack_pointer;
  at.registers.value[kFramePointer] = frame_pointer;
  at.has_frame_pointer = has_frame_pointer;
  at.is_innermost = at.is_interrupted = false;
  return true;
}

// Whether there is the kernel's code at an address to which a signal's handler returns. On aarch64 no table says so, or
// not of all kernels; all unwinders know it by its two instructions, `mov x8, #139; svc #0` (libgcc,
// config/aarch64/linux-unwind.h).
template <memory::Reader M>
bool is_return_from_signal(const M& memory, std::uint64_t pc) {
  constexpr std::uint64_t kInstructions = 0xd4000001d2801168;
  std::uint64_t there = 0;
  return kReturnsByRegister && memory.load(Address{pc}, there) && there == kInstructions;
}

// The rule at an instruction. Where no table has one the code itself may say it.
template <memory::Reader C>
Rule rule_at(const C& code, const ModuleMap& modules, const Cursor& at, std::uint64_t instruction) {
  const Rule& rule = modules.rule_at(instruction);
  const bool may_say =
      rule.kind == Rule::Kind::kCannot && (rule.stop == UnwindStop::kNoTable || rule.stop == UnwindStop::kNoRule);
  if (!may_say || at.is_interrupted) return rule;
  return rule_of_epilogue(code, at.registers.pc).value_or(rule);
}

// Goes on to what a signal interrupted: its handler returns to code that finds the ucontext_t from where the stack
// pointer is.
template <memory::Reader M>
UnwindStop step_out_of_signal(const M& memory, Cursor& at) {
  const std::uint64_t context = at.registers.value[kStackPointer] + kContextOfSignal;
  for (std::uint8_t number = 0; number < kRegisters; ++number)
    if (!memory.load(Address{context + place_in_context(number)}, at.registers.value[number]))
      return UnwindStop::kUnreadable;
  if (!memory.load(Address{context + place_of_pc_in_context()}, at.registers.pc)) return UnwindStop::kUnreadable;
  at.is_innermost = at.is_interrupted = at.has_frame_pointer = true;
  return UnwindStop::kComplete;
}

}  // namespace internal

// Unwinds from `start`, of which `known` is known, into `out`. Async-signal-safe if `memory`, which has the stack, and
// `code` are. Signals may have moved the thread to other stacks; within one, each frame is further out than the one
// before, so that it comes to an end; and in any case `out` does.
template <memory::Reader M, memory::Reader C>
Unwind unwind(const M& memory, const C& code, const ModuleMap& modules, const Registers& start,
              std::span<NativeFrame> out, Known known) {
  Unwind result;
  internal::Cursor at{start};
  at.is_innermost = known == Known::kAll;
  at.is_interrupted = known != Known::kCaller;
  at.has_frame_pointer = known != Known::kPlaceOnly;
  while (true) {
    if (!internal::step_plainly(memory, modules, at, out, result)) return result;
    // A call may be a function's last instruction: then its return address belongs to the next one already.
    const std::uint64_t instruction = at.is_interrupted ? at.registers.pc : at.registers.pc - 1;
    const Rule rule = internal::rule_at(code, modules, at, instruction);
    const bool is_signal = rule.kind == Rule::Kind::kSignal ||
                           (rule.kind == Rule::Kind::kCannot && internal::is_return_from_signal(code, at.registers.pc));
    // What is no code at all is no frame, but for where the thread is.
    if (!is_signal && rule.stop == UnwindStop::kNoModule && rule.kind == Rule::Kind::kCannot && !at.is_interrupted) {
      result.stop = at.registers.pc == 0 ? UnwindStop::kComplete : UnwindStop::kNoModule;
      return result;
    }
    if (result.count == out.size()) {
      result.stop = UnwindStop::kTruncated;
      return result;
    }
    NativeFrame& frame = out[result.count++];
    frame = {Address{instruction}, Address{}};
    if (rule.kind == Rule::Kind::kOutermost) return result;
    if (is_signal) {
      result.stop = internal::step_out_of_signal(memory, at);
      frame.cfa = Address{at.registers.value[kStackPointer]};
    } else if (rule.kind == Rule::Kind::kCannot) {
      result.stop = rule.stop;
    } else {
      std::uint64_t cfa = 0;
      result.stop = internal::find_cfa(memory, rule, at, cfa);
      if (result.stop == UnwindStop::kComplete) result.stop = internal::step_out(memory, rule, cfa, at);
      if (result.stop == UnwindStop::kComplete) frame.cfa = Address{cfa};
    }
    if (result.stop != UnwindStop::kComplete) return result;
  }
}
// Of memory that has both.
template <memory::Reader M>
Unwind unwind(const M& memory, const ModuleMap& modules, const Registers& start, std::span<NativeFrame> out,
              Known known = Known::kAll) {
  return unwind(memory, memory, modules, start, out, known);
}

namespace internal {

// One step by a plain rule, if `step` is one that can be taken; false if not, and nothing has changed.
template <memory::Reader M>
bool step_out_plainly(const M& memory, PlainStep step, Cursor& at) {
  constexpr std::uint64_t kWord = 8;
  if (!step.is_plain() || (step.is_by_frame_pointer() && !at.has_frame_pointer)) return false;
  const std::uint64_t stack_pointer = at.registers.value[kStackPointer];
  std::uint64_t frame_pointer = at.registers.value[kFramePointer];
  const std::uint64_t cfa = (step.is_by_frame_pointer() ? frame_pointer : stack_pointer) + step.offset();
  std::uint64_t pc = 0;
  if (cfa <= stack_pointer || cfa % kWord != 0 ||
      (step.saved() != 0 && !memory.load(Address{cfa - step.saved()}, frame_pointer)) ||
      !memory.load(Address{cfa - step.return_place()}, pc))
    return false;
  at.registers.pc = without_signature(pc);
  at.registers.value[kStackPointer] = cfa;
  at.registers.value[kFramePointer] = frame_pointer;
  at.has_frame_pointer = at.has_frame_pointer || step.saved() != 0;
  at.is_innermost = at.is_interrupted = false;
  return true;
}

}  // namespace internal

// Takes `registers`, of which all are known, out of the calls of functions in `code` that the thread is in, to what
// called the outermost of them: then they are Known::kCaller. False if the way out could not be found.
// Async-signal-safe if `memory` is.
template <memory::Reader M>
bool leave(const M& memory, const ModuleMap& modules, const CodeRange& code, Registers& registers) {
  constexpr int kDeepest = 64;
  internal::Cursor at{registers};
  for (int i = 0; i < kDeepest; ++i) {
    const std::uint64_t instruction = at.is_interrupted ? at.registers.pc : at.registers.pc - 1;
    if (instruction < code.start || instruction >= code.end) {
      registers = at.registers;
      return !at.is_interrupted && at.has_frame_pointer;
    }
    if (internal::step_out_plainly(memory, modules.step_at(instruction), at)) continue;
    const Rule& rule = modules.rule_at(instruction);
    const bool is_call = rule.kind == Rule::Kind::kRegister || rule.kind == Rule::Kind::kLoad;
    std::uint64_t cfa = 0;
    if (!is_call || internal::find_cfa(memory, rule, at, cfa) != UnwindStop::kComplete ||
        internal::step_out(memory, rule, cfa, at) != UnwindStop::kComplete)
      return false;
  }
  return false;
}

}  // namespace plimsoll::native
