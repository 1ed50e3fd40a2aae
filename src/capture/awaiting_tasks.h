// capture/awaiting_tasks.h: stacks of threads that run asyncio tasks, with those who await them (cpython/awaiting.h).
#pragma once

#include <atomic>
#include <span>

#include "capture/cpu_sampler.h"
#include "cpython/awaiting.h"

namespace plimsoll::capture {

// The slots beside those of a thread's own frames, for the tasks that await what it runs.
inline std::size_t awaiting_slots(const Interpreter& interpreter) {
  constexpr std::size_t kSlots = 1024;
  return interpreter.tasks ? kSlots : 0;
}

// cpython::put_awaiting, if the recording is of tasks, with what was met noted in `seen`. `slots` have room for
// awaiting_slots beside the frames. Async-signal-safe if `memory` is.
template <memory::Reader M>
cpython::AwaitingStack put_awaiting(const M& memory, const Interpreter& interpreter, Address thread_state,
                                    std::span<cpython::PyFrame> slots, const cpython::Walk& walk,
                                    SeenFilter& seen) noexcept {
  if (!interpreter.tasks)
    return {cpython::AwaitingStack::Outcome::kNoStep, walk.count, walk.count, walk.stop, walk.count};
  const cpython::TaskPlaces places{interpreter.layout, *interpreter.tasks, interpreter.code_type};
  const cpython::AwaitingStack stack =
      cpython::put_awaiting(memory, places, thread_state, slots, walk, slots.size() - awaiting_slots(interpreter));
  cpython::each_from_outermost(slots.first(stack.count).subspan(stack.own),
                               [&](const cpython::PyFrame& frame, std::string_view) {
                                 if (!is_null(frame.code)) seen.mark(frame.code);
                                 return true;
                               });
  return stack;
}

}  // namespace plimsoll::capture
