#include "capture/interleave.h"

namespace plimsoll::capture {
namespace {

class Interleaver {
 public:
  Interleaver(const NativeStack& native, std::vector<StackItem>& out) : native_(native), out_(out) {
    lower_ = native.head.stack_pointer;
  }

  // The Python frames from `first` to `end` were entered at `mark`.
  bool add_entry(std::size_t first, std::size_t end, Address mark) {
    if (const std::size_t loop = find(mark); loop < native_.frames.size()) {
      add_native(loop);
      next_ = loop + 1;
      lower_ = native_.frames[loop].cfa;
    } else if (is_beyond(mark)) {
      add_native(native_.frames.size());
    } else if (first != end) {
      return false;  // else it is nobody's: the mark around a thread's first entry is not on the stack
    }
    add_python(first, end);
    return true;
  }
  // What called Python's outermost frame, if that is known to be the outermost.
  void add_rest() { add_native(native_.frames.size()); }
  void add_python(std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) out_.push_back({StackItem::Kind::kPython, static_cast<std::uint32_t>(i)});
  }

 private:
  // The frame that has an address in its part of the stack; how many there are if none has.
  [[nodiscard]] std::size_t find(Address mark) const {
    Address lower = lower_;
    for (std::size_t i = next_; i < native_.frames.size(); ++i) {
      const Address upper = native_.frames[i].cfa;
      if (!is_null(upper) && lower <= mark && mark < upper) return i;
      if (!is_null(upper)) lower = upper;
    }
    return native_.frames.size();
  }
  // Whether it can be in a frame that the unwinding did not arrive at.
  [[nodiscard]] bool is_beyond(Address mark) const {
    if (native_.head.stop == native::UnwindStop::kComplete) return false;
    Address last = lower_;
    for (const native::NativeFrame& frame : native_.frames)
      if (!is_null(frame.cfa) && frame.cfa > last) last = frame.cfa;
    return mark >= last;
  }
  void add_native(std::size_t end) {
    for (; next_ < end; ++next_) out_.push_back({StackItem::Kind::kNative, static_cast<std::uint32_t>(next_)});
  }

  const NativeStack& native_;
  std::vector<StackItem>& out_;
  std::size_t next_ = 0;
  Address lower_{};
};

}  // namespace

bool interleave(const NativeStack& native, std::span<const cpython::PyFrame> frames, cpython::WalkStop python_stop,
                std::vector<StackItem>& out) {
  out.clear();
  Interleaver stack(native, out);
  std::size_t first = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (frames[i].position != cpython::kEntryMark) continue;
    if (!stack.add_entry(first, i, frames[i].code)) return false;
    first = i + 1;
  }
  const bool has_all = python_stop != cpython::WalkStop::kTruncated;
  if (has_all && first != frames.size()) return false;
  stack.add_python(first, frames.size());
  if (has_all) stack.add_rest();
  return true;
}

}  // namespace plimsoll::capture
