// capture/interleave.h: Python's frames and those of machine code, as one stack.
//
// Whoever enters Python from C leaves a mark in its own part of the stack: in the frame of the interpreter's loop. So
// the Python frames that were entered there stand where that frame of machine code stands, and in its place. Addresses
// decide, never names.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "capture/raw_sample.h"

namespace plimsoll::capture {

// A frame of the one or the other kind, by its place in its own list.
struct StackItem {
  // Which list it is in.
  enum class Kind : std::uint8_t { kPython, kNative } kind = Kind::kPython;
  std::uint32_t index = 0;
  bool operator==(const StackItem&) const = default;
};

// Where a thread's frames of machine code are.
struct NativeStack {
  RawNative head;
  std::span<const native::NativeFrame> frames;  // innermost first
};

// What follows a RawSample with has_native: then come its Python frames, after so many bytes.
inline NativeStack native_stack_of(std::span<const std::byte> rest) {
  const auto& head = *reinterpret_cast<const RawNative*>(rest.data());
  return {head, {reinterpret_cast<const native::NativeFrame*>(rest.data() + sizeof head), head.count}};
}
inline std::size_t native_bytes(const NativeStack& native) { return sizeof native.head + native.frames.size_bytes(); }

// Fills `out`, innermost first. `frames` have marks (kEntryMark) among them; `python_stop` is how their walk ended.
// Where the unwinding did not arrive, the Python frames beyond follow by themselves, as they are known to be further
// out. False if a mark is in no frame that it should be in: then nothing is known of what is between what.
bool interleave(const NativeStack& native, std::span<const cpython::PyFrame> frames, cpython::WalkStop python_stop,
                std::vector<StackItem>& out);

}  // namespace plimsoll::capture
