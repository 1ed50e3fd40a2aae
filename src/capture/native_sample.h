// capture/native_sample.h: a sample with the machine code of its thread, too.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <ucontext.h>

#include "base/sample_ring.h"
#include "capture/awaiting_tasks.h"
#include "capture/interleave.h"

namespace plimsoll::capture {

// After the native frames of a sample whose unwinding met code of no known file (kNoModule): the registers, and then so
// many bytes of the stack, from 128 below the stack pointer on. A file may have been loaded a moment ago, and when its
// table has been compiled, the same stack can be unwound.
struct RawStack {
  native::Registers registers;
  Address leaf{};  // up to Python 3.10, the innermost Python frame
  native::Known known = native::Known::kAll;
  std::uint64_t bytes = 0;
};

// The most that is copied: importing nests deeply, in C more than in Python.
inline constexpr std::size_t kMostCopied = std::size_t{256} << 10U;

// As much of it as leaves room for others. A ring that gets full has copies of fewer bytes, which may be too few to
// find a deep stack's end, but the samples are there.
inline std::size_t most_copied(const SampleRing& ring) {
  constexpr std::size_t kPart = 16;
  return std::min(kMostCopied, (ring.capacity() - std::min(ring.backlog(), ring.capacity())) / kPart);
}

// The most that such a sample takes in the ring, if `max_depth` frames of each kind are kept. There can be as many
// entries into Python as Python frames.
inline std::size_t most_native_bytes(const Interpreter& interpreter, std::size_t max_depth,
                                     std::size_t copied = kMostCopied) {
  return sizeof(RawSample) + sizeof(RawNative) + max_depth * sizeof(native::NativeFrame) + sizeof(RawStack) + copied +
         (2 * max_depth + awaiting_slots(interpreter)) * sizeof(cpython::PyFrame);
}

// How many bytes of such a copy follow the native frames, which `rest` begins behind; 0 if there is none.
std::size_t copy_bytes(const NativeStack& native, std::span<const std::byte> rest);

// Unwinds the copy into `frames`, which the result refers to. For the drain thread.
NativeStack unwind_copy(std::span<const std::byte> rest, const native::ModuleMap& modules, std::size_t max_depth,
                        std::vector<native::NativeFrame>& frames);

// What was written, as SampleRing::commit wants it.
struct NativeSample {
  std::size_t used = 0;
  std::size_t written = 0;
  native::UnwindStop native_stop = native::UnwindStop::kComplete;
  cpython::WalkStop stop = cpython::WalkStop::kComplete;
  cpython::AwaitingStack::Outcome tasks = cpython::AwaitingStack::Outcome::kNoStep;
};

// Where a thread is, and what is known of its registers there.
struct NativePlace {
  native::Registers registers;
  native::Known known = native::Known::kAll;
};

// Where the calling thread called this library from: for hooks, whose own frames are nobody's business.
// Async-signal-safe.
NativePlace caller_of_library(const native::ModuleMap& modules) noexcept;

// Writes what follows `sample`, and perhaps something between, into `room`: the calling thread's frames from `place`
// on, and its Python frames. The sample's has_native is set, and what the walk has found. Async-signal-safe.
NativeSample write_native_stack(std::span<std::byte> room, RawSample& sample, const native::ModuleMap& modules,
                                const NativePlace& place, const Interpreter& interpreter, Address thread_state,
                                std::size_t max_depth, SeenFilter& seen) noexcept;

// Writes a sample into `room`, which has most_native_bytes, of which the copy has what the rest leaves: `head`, what of
// the calling thread was interrupted at `context`, and its Python frames. Async-signal-safe.
NativeSample write_native_sample(std::span<std::byte> room, const RawSample& head, const native::ModuleMap& modules,
                                 const ucontext_t& context, const Interpreter& interpreter, Address thread_state,
                                 std::size_t max_depth, SeenFilter& seen) noexcept;

}  // namespace plimsoll::capture
