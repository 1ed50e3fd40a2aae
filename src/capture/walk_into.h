// capture/walk_into.h: a thread's Python frames, as every record has them.
#pragma once

#include <span>

#include "capture/awaiting_tasks.h"
#include "cpython/unlinked.h"
#include "memory/local.h"
#include "native/registers.h"

namespace plimsoll::capture {

// What was written of a stack.
struct WrittenStack {
  std::size_t used = 0;     // slots: the frames of RawSample::frame_count, and those who await them
  std::size_t touched = 0;  // slots
  cpython::AwaitingStack::Outcome tasks = cpython::AwaitingStack::Outcome::kNoStep;
};

// Notes what was met, and will be told of by its address. Async-signal-safe.
inline void mark_frames(std::span<const cpython::PyFrame> frames, SeenFilter& seen) noexcept {
  for (const cpython::PyFrame& frame : frames)
    if (frame.position != cpython::kEntryMark) seen.mark(frame.code);
}

// The registers of a thread that has called us: none that an interpreter was about to use.
struct Called {
  native::Registers operator()() const noexcept { return {}; }
};

// Walks a thread's frames into `slots`, which have room for awaiting_slots beside them, and notes in `sample` how that
// went, and in `seen` who awaits them: its own frames, the first RawSample::frame_count, are the caller's to mark.
// `registers()` are those that the thread was interrupted with, which few walks ask for. Async-signal-safe.
template <typename Registers, typename Entries>
WrittenStack walk_into(RawSample& sample, const Interpreter& interpreter, Address thread_state,
                       const Registers& registers, std::span<cpython::PyFrame> slots, SeenFilter& seen,
                       Entries entries) noexcept {
  const memory::LocalReader memory;
  if (is_null(thread_state)) {
    sample.python = RawSample::Python::kNoState;
    return {};
  }
  const std::span<cpython::PyFrame> frames = slots.first(slots.size() - awaiting_slots(interpreter));
  cpython::Walk walk =
      cpython::walk_thread(memory, interpreter.layout, interpreter.code_type, thread_state, frames, entries);
  if (walk.stop == cpython::WalkStop::kUnlinked)
    walk = cpython::walk_unlinked(memory, interpreter.layout, interpreter.code_type, thread_state, registers().value,
                                  frames, entries);
  sample.tags = tags_of(memory, interpreter.layout, interpreter.tags, thread_state);
  sample.stop = walk.stop;
  sample.leaf_skipped = walk.leaf_skipped ? 1 : 0;
  if (!cpython::is_proven(walk.stop)) return {0, walk.count};
  sample.frame_count = walk.count;
  if (!interpreter.tasks) return {walk.count, walk.count};
  const cpython::AwaitingStack stack = put_awaiting(memory, interpreter, thread_state, slots, walk, seen);
  sample.frame_count = stack.own;
  sample.stop = stack.stop;
  return {stack.count, stack.touched, stack.outcome};
}

}  // namespace plimsoll::capture
