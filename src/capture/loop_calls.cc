#include "capture/loop_calls.h"

namespace plimsoll::capture {
namespace {

// How many of the innermost calls have no frame in the chain.
enum class Frameless : std::uint8_t { kNone, kOne, kUnknown };

Frameless calls_without_frame(const NativeStack& native, std::span<const std::uint32_t> calls, std::size_t frames,
                              bool is_whole) {
  // What the loop calls before its frame is in the chain, and after it: hardly anything.
  constexpr std::uint32_t kDeepest = 3;
  const bool in_first = (native.head.leaf & kInFirst) != 0;
  const bool in_second = (native.head.leaf & kInSecond) != 0;
  if (in_first && !in_second) return Frameless::kNone;
  if (!in_first && !in_second) return Frameless::kUnknown;
  // Both may keep it, as the outer one's registers are saved further in.
  if (is_whole && calls.size() == frames) return in_first ? Frameless::kNone : Frameless::kUnknown;
  if (is_whole && calls.size() == frames + 1) return Frameless::kOne;
  return calls.front() <= kDeepest ? Frameless::kOne : Frameless::kUnknown;
}

}  // namespace

bool interleave_by_calls(const NativeStack& native, const native::ModuleMap& modules,
                         std::span<const cpython::PyFrame> frames, cpython::WalkStop python_stop,
                         std::vector<StackItem>& out) {
  out.clear();
  const auto put = [&](StackItem::Kind kind, std::size_t index) {
    out.push_back({kind, static_cast<std::uint32_t>(index)});
  };
  std::vector<std::uint32_t> calls;
  for (std::size_t i = 0; i < native.frames.size(); ++i)
    if (modules.is_followed(raw(native.frames[i].instruction))) calls.push_back(static_cast<std::uint32_t>(i));
  const bool has_all_native = native.head.stop == native::UnwindStop::kComplete;
  const bool has_all_python = python_stop != cpython::WalkStop::kTruncated;
  std::size_t skipped = 0;
  if (!frames.empty() && !calls.empty()) {
    const Frameless found = calls_without_frame(native, calls, frames.size(), has_all_native && has_all_python);
    if (found == Frameless::kUnknown) return false;
    skipped = found == Frameless::kOne ? 1 : 0;
  }
  if (has_all_native && calls.size() < frames.size() + skipped) return false;
  std::size_t next = 0;  // of machine code
  std::size_t python = 0;
  for (std::size_t call = 0; call < calls.size() && python < frames.size(); ++call) {
    for (; next < calls[call]; ++next) put(StackItem::Kind::kNative, next);
    ++next;
    if (call >= skipped) put(StackItem::Kind::kPython, python++);
  }
  // Beyond the last frame that is known, nobody knows whose the calls are; beyond the last call, the frames go on.
  const bool has_rest = has_all_python || python < frames.size();
  for (; has_rest && next < native.frames.size(); ++next) put(StackItem::Kind::kNative, next);
  for (; python < frames.size(); ++python) put(StackItem::Kind::kPython, python);
  return true;
}

}  // namespace plimsoll::capture
