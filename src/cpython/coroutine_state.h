// cpython/coroutine_state.h: whether a coroutine runs or is suspended, and what it awaits, in the ways of all versions.
//
// Nothing that is read is trusted. Async-signal-safe if `memory` is.
#pragma once

#include "cpython/task_layout.h"

namespace plimsoll::cpython {

// What a coroutine, generator or asynchronous generator is doing.
enum class CoroutineState : std::uint8_t {
  kUnreadable,
  kCreated,    // has not run its first line
  kExecuting,  // runs, or has called what runs
  kAwaiting,   // is suspended in an await
  kYielding,   // is suspended, and awaits nothing
  kEnded,
};

// The address of a coroutine's frame; null if it has none any more. False if it cannot be read.
template <memory::Reader M>
bool load_coroutine_frame(const M& memory, const TaskLayout& tasks, Address coroutine, Address& frame) {
  frame = offset_by(coroutine, tasks.coroutine.frame);
  return !tasks.coroutine.frame_is_elsewhere || memory::load_address(memory, frame, frame);
}

namespace internal {

// Whether a frame that is suspended is in an await.
template <memory::Reader M>
bool load_await_sign(const M& memory, const Layout& layout, const TaskLayout& tasks, Address frame, bool& awaits) {
  constexpr std::uint64_t kUnit = 2;  // an opcode, and its argument
  std::uint8_t sign = 0;
  if (tasks.coroutine.await_sign == AwaitSign::kResume) {
    // Behind each place where it can be suspended there is a RESUME: 1 behind a yield, 2 and 3 behind what it awaits.
    constexpr std::uint8_t kFirstAwait = 2;
    Address at{};
    if (!memory::load_address(memory, offset_by(frame, layout.frame.position), at) ||
        !memory.load(offset_by(at, kUnit + 1), sign))
      return false;
    awaits = sign >= kFirstAwait;
    return true;
  }
  constexpr std::uint8_t kYieldFrom = 72;
  Address code{}, bytecode{};
  std::uint32_t position = 0;
  if (!memory::load_address(memory, offset_by(frame, layout.frame.executable), code) ||
      !memory::load_address(memory, offset_by(code, layout.code.bytecode), bytecode) ||
      !memory.load(offset_by(frame, layout.frame.position), position))
    return false;
  const std::uint64_t bytes = layout.position_style == PositionStyle::kLastiUnits ? position * kUnit : position;
  if (!memory.load(offset_by(bytecode, layout.bytes.data + bytes + kUnit), sign)) return false;
  awaits = sign == kYieldFrom;
  return true;
}

}  // namespace internal

// `frame` is what load_coroutine_frame has found.
template <memory::Reader M>
CoroutineState coroutine_state(const M& memory, const Layout& layout, const TaskLayout& tasks, Address coroutine,
                               Address frame) {
  using State = CoroutineState;
  const auto& known = tasks.coroutine;
  if (is_null(frame)) return State::kEnded;
  const Address holder = known.state_style == StateStyle::kInFrame ? frame : coroutine;
  std::uint8_t byte = 0;
  if (!memory.load(offset_by(holder, known.frame_state), byte)) return State::kUnreadable;
  if (known.state_style == StateStyle::kRunningFlag) {
    std::uint32_t position = 0;
    if (byte != 0) return State::kExecuting;
    if (!memory.load(offset_by(frame, layout.frame.position), position)) return State::kUnreadable;
    if (static_cast<std::int32_t>(position) < 0) return State::kCreated;
  } else {
    const auto state = static_cast<std::int8_t>(byte);
    if (state >= known.first_ended) return State::kEnded;
    if (state == known.executing) return State::kExecuting;
    if (state < known.first_awaiting || state > known.last_awaiting)
      return state == known.created ? State::kCreated : State::kYielding;
  }
  if (known.await_sign == AwaitSign::kState) return State::kAwaiting;
  bool awaits = false;
  if (!internal::load_await_sign(memory, layout, tasks, frame, awaits)) return State::kUnreadable;
  return awaits ? State::kAwaiting : State::kYielding;
}

// What a suspended coroutine awaits: it is on the stack of its frame. False if it cannot be read.
template <memory::Reader M>
bool load_awaited(const M& memory, const Layout& layout, const TaskLayout& tasks, Address frame, Address& awaited) {
  const auto& known = tasks.coroutine;
  Address top{};
  if (known.stack_style == StackStyle::kTop) {
    if (!memory::load_address(memory, offset_by(frame, known.stack_top), top)) return false;
  } else {
    constexpr std::uint32_t kMost = 1U << 20U;  // values of one frame
    std::uint32_t count = 0;
    top = offset_by(frame, known.stack_values);
    if (known.stack_style == StackStyle::kCountElsewhere && !memory::load_address(memory, top, top)) return false;
    if (!memory.load(offset_by(frame, known.stack_top), count) || count == 0 || count > kMost) return false;
    top = offset_by(top, std::uint64_t{count} * sizeof(Address));
  }
  if (!memory::load_address(memory, Address{raw(top) - known.awaited}, awaited)) return false;
  awaited = Address{raw(awaited) & ~layout.executable_tag_mask};
  return true;
}

}  // namespace plimsoll::cpython
