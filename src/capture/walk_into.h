// capture/walk_into.h: a thread's Python frames, as every record has them.
#pragma once

#include <span>

#include "capture/cpu_sampler.h"
#include "memory/local.h"

namespace plimsoll::capture {

// Walks a thread's frames into `frames` and notes in `sample` how that went, and in `seen` what was met. How many
// frames were written to. Async-signal-safe.
template <typename Entries>
std::uint32_t walk_into(RawSample& sample, const Interpreter& interpreter, Address thread_state,
                        std::span<cpython::PyFrame> frames, SeenFilter& seen, Entries entries) noexcept {
  const memory::LocalReader memory;
  if (is_null(thread_state)) {
    sample.python = RawSample::Python::kNoState;
    return 0;
  }
  const cpython::Walk walk =
      cpython::walk_thread(memory, interpreter.layout, interpreter.code_type, thread_state, frames, entries);
  sample.tags = tags_of(memory, interpreter.layout, interpreter.tags, thread_state);
  sample.stop = walk.stop;
  sample.leaf_skipped = walk.leaf_skipped ? 1 : 0;
  if (cpython::is_proven(walk.stop)) {
    sample.frame_count = walk.count;
    for (const cpython::PyFrame& found : frames.first(walk.count))
      if (!Entries::kAreMarked || found.position != cpython::kEntryMark) seen.mark(found.code);
  }
  return walk.count;
}

}  // namespace plimsoll::capture
