// capture/loop_calls.h: which call of the interpreter's loop runs which Python frame, up to Python 3.10.
//
// There one call of _PyEval_EvalFrameDefault runs one Python frame, so the n-th such call on the stack belongs to the
// n-th frame. Two things can be in the way. A call puts its frame into the thread's chain a few instructions after it
// has begun, and takes it out a few before it ends: meanwhile the innermost call has none. And a greenlet's stack goes
// on with calls that belong to others. So it is asked, too, whose frame the innermost of the chain is: whoever calls
// the loop lets go of the frame afterwards, and so keeps its address, in its own part of the stack or in a register
// that the loop has saved.
#pragma once

#include <string_view>
#include <vector>

#include "capture/interleave.h"
#include "cpython/layout.h"
#include "native/module_map.h"

namespace plimsoll::capture {

// Whether frames are told apart by counting calls.
constexpr bool counts_calls(const cpython::Layout& layout) {
  return layout.frame_style == cpython::FrameStyle::kFrameObject;
}
inline constexpr std::string_view kLoopFunction = "_PyEval_EvalFrameDefault";

// Which of the two innermost calls of the loop keep the address of the chain's innermost frame: RawNative::leaf.
enum LeafAt : std::uint8_t { kNowhere = 0, kInFirst = 1, kInSecond = 2 };

namespace internal {

// Whether the call of the loop at frames[i] keeps `word`.
template <memory::Reader M>
bool keeps(const M& memory, std::span<const native::NativeFrame> frames, std::size_t i, Address word) {
  constexpr std::uint64_t kSaved = 56;  // six registers and the return address
  constexpr std::uint64_t kLargestCaller = 2048;
  const std::uint64_t cfa = raw(frames[i].cfa);
  if (cfa == 0) return false;
  std::uint64_t end = i + 1 < frames.size() ? raw(frames[i + 1].cfa) : cfa;
  end = end < cfa ? cfa : end - cfa > kLargestCaller ? cfa + kLargestCaller : end;
  for (std::uint64_t at = cfa - kSaved; at < end; at += 8)
    if (Address found{}; memory::load_address(memory, Address{at}, found) && found == word) return true;
  return false;
}

}  // namespace internal

// RawNative::leaf of a stack whose chain of Python frames begins with `leaf`. Async-signal-safe if `memory` is.
template <memory::Reader M>
std::uint8_t find_leaf(const M& memory, const native::ModuleMap& modules, std::span<const native::NativeFrame> frames,
                       Address leaf) {
  std::uint8_t places = kNowhere;
  if (is_null(leaf)) return places;
  int calls = 0;
  for (std::size_t i = 0; i < frames.size() && calls < 2; ++i) {
    if (!modules.is_followed(raw(frames[i].instruction))) continue;
    if (internal::keeps(memory, frames, i, leaf))
      places = static_cast<std::uint8_t>(places | (calls == 0 ? kInFirst : kInSecond));
    ++calls;
  }
  return places;
}

// As interleave, of frames without marks: `modules` follow the interpreter's loop. False if the counts disagree.
bool interleave_by_calls(const NativeStack& native, const native::ModuleMap& modules,
                         std::span<const cpython::PyFrame> frames, cpython::WalkStop python_stop,
                         std::vector<StackItem>& out);

}  // namespace plimsoll::capture
