// cpython/walk.h: the frames of one thread, innermost first. The one frame walker of Plimsoll.
//
// It runs in a signal handler on its own thread's frames, and on another process's memory: it allocates nothing, takes
// no lock, trusts nothing it reads, and says why it stopped. What it cannot prove to be a frame it does not report.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "cpython/layout.h"
#include "memory/reader.h"

namespace plimsoll::cpython {

// A Python frame as found: which code object, and how far into its bytecode. 16 bytes, as it travels in a RawSample.
struct PyFrame {
  Address code{};
  // Byte offset of the current instruction; negative before the first one; kNoPosition where it cannot be told.
  std::int32_t position = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(PyFrame) == 16);
inline constexpr std::int32_t kNoPosition = INT32_MIN;
// Of a frame that has run no instruction yet.
inline constexpr std::int32_t kBeforeFirst = -2;
// No frame, but where C code entered Python, after the frames that it entered: `code` is the address of what the entry
// left on the C stack. Only where entries are asked for.
inline constexpr std::int32_t kEntryMark = INT32_MIN + 1;

// Why a walk ended. Everything but kComplete and kTruncated means that the chain could not be proven: no stack.
enum class WalkStop : std::uint8_t {
  kComplete,    // reached the outermost frame
  kTruncated,   // `out` is full: the outermost frames are missing
  kUnreadable,  // an address could not be read
  kMisaligned,  // a frame pointer is not a multiple of 8
  kBadOwner,    // a frame's owner is no value of enum _frameowner
  kNotCode,     // a frame's code object is not a code object
  kCycle,       // the chain of frames comes back to itself
  kEntering,    // an entry from C is not filled in, nor does it say what is around it (see walk_thread)
  kUnlinked,    // the chain ends in a frame without caller (see unlinked.h)
};
inline constexpr std::size_t kWalkStopCount = 9;

// Whether the thread is in the midst of a change of frames, which is over some instructions later.
constexpr bool is_passing(WalkStop stop) { return stop == WalkStop::kEntering || stop == WalkStop::kUnlinked; }

// Whether what was found is a stack that was there, as far as it goes.
constexpr bool is_proven(WalkStop stop) { return stop == WalkStop::kComplete || stop == WalkStop::kTruncated; }

// The reason in words, for drop counters and messages.
constexpr const char* text(WalkStop stop) {
  constexpr std::array<const char*, kWalkStopCount> kTexts{
      "complete",          "stack too deep",      "frame unreadable", "frame misaligned",    "frame owner invalid",
      "not a code object", "frames form a cycle", "entering Python",  "frame without caller"};
  return kTexts[static_cast<std::size_t>(stop)];
}

// How many frames are in `out`, and why there are no more.
struct Walk {
  std::uint32_t count = 0;
  WalkStop stop = WalkStop::kComplete;
  // The innermost frame was between two states (being pushed or popped) and is left out; the rest is proven.
  bool leaf_skipped = false;
  Address outermost{};  // with kComplete, the last frame that was looked at
};

// Finds the innermost frame of a thread state; null when the thread runs no Python code. False if unreadable.
template <memory::Reader M>
bool current_frame(const M& memory, const Layout& layout, Address tstate, Address& frame) {
  if (!memory::load_address(memory, offset_by(tstate, layout.tstate.current_frame), frame)) return false;
  if (layout.frame_style != FrameStyle::kCFrame || is_null(frame)) return true;
  return memory::load_address(memory, offset_by(frame, layout.cframe.current_frame), frame);
}

// Whether a thread state is one of a living thread. One that has been freed may still look like one; but its neighbours
// in the interpreter's list do not know it any more.
template <memory::Reader M>
bool is_thread_state(const M& memory, const Layout& layout, Address tstate) {
  Address previous{};
  Address next{};
  Address back{};
  if (is_null(tstate) || !memory::load_address(memory, offset_by(tstate, layout.tstate.previous), previous) ||
      !memory::load_address(memory, offset_by(tstate, layout.tstate.next), next))
    return false;
  if (!is_null(previous) &&
      (!memory::load_address(memory, offset_by(previous, layout.tstate.next), back) || back != tstate))
    return false;
  return is_null(next) ||
         (memory::load_address(memory, offset_by(next, layout.tstate.previous), back) && back == tstate);
}

namespace internal {

// How many bytes of a frame, and of a code object, hold all that a walk reads of them.
struct Reach {
  explicit constexpr Reach(const Layout& layout)
      : frame(end_of_fields({layout.frame.previous, layout.frame.executable, layout.frame.position, layout.frame.owner,
                             layout.frame.tlbc_index})),
        code(end_of_fields({layout.object.type, layout.object.var_size, layout.code.tlbc})) {}
  std::size_t frame, code;
};

// Offset of an instruction pointer into its code object's bytecode, or kNoPosition if it points elsewhere.
template <memory::Reader M>
[[gnu::always_inline]] inline std::int32_t instruction_offset(const M& memory, const Layout& layout,
                                                              const memory::Fields<M>& frame,
                                                              const memory::Fields<M>& code, Address instr) {
  std::uint64_t units = 0;
  if (!code.load(layout.object.var_size, units)) return kNoPosition;
  Address start = offset_by(code.at(), layout.code.bytecode);
  if (layout.code.tlbc != kNoField) {
    // Free-threaded: the frame says which of the code object's copies of the bytecode it runs.
    Address copies{};
    std::uint64_t count = 0;
    std::uint32_t index = 0;
    if (!code.load(layout.code.tlbc, copies) || is_null(copies) || !memory.load(copies, count) ||
        !frame.load(layout.frame.tlbc_index, index) || index >= count ||
        !memory::load_address(memory, offset_by(copies, 8 + std::uint64_t{index} * 8), start))
      return kNoPosition;
  }
  // One unit before the start is where a frame stands that has not run its first instruction yet (3.11, 3.12).
  const auto offset = static_cast<std::int64_t>(raw(instr) - raw(start));
  const bool inside = units < (1U << 30U) && offset >= -2 && offset < static_cast<std::int64_t>(units * 2);
  return inside ? static_cast<std::int32_t>(offset) : kNoPosition;
}

template <memory::Reader M>
[[gnu::always_inline]] inline std::int32_t position_of(const M& memory, const Layout& layout,
                                                       const memory::Fields<M>& frame, const memory::Fields<M>& code) {
  if (layout.position_style == PositionStyle::kInstruction) {
    Address instr{};
    return frame.load(layout.frame.position, instr) ? instruction_offset(memory, layout, frame, code, instr)
                                                    : kNoPosition;
  }
  std::uint32_t lasti = 0;
  if (!frame.load(layout.frame.position, lasti)) return kNoPosition;
  const auto offset = static_cast<std::int32_t>(lasti);
  if (offset < 0) return kBeforeFirst;
  if (layout.position_style == PositionStyle::kLastiBytes) return offset;
  return offset < INT32_MAX / 2 ? offset * 2 : kNoPosition;
}

template <memory::Reader M>
std::int32_t position_of(const M& memory, const Layout& layout, Address frame, Address code) {
  const Reach reach(layout);
  return position_of(memory, layout, memory::Fields<M>(memory, frame, reach.frame),
                     memory::Fields<M>(memory, code, reach.code));
}

// One look at one frame. On kComplete, `previous` is the next frame out, and `found` says whether `out` was filled:
// an entry from C (a shim) is a frame without code.
struct FrameLook {
  WalkStop stop = WalkStop::kComplete;
  bool found = false;
  Address previous{};
};

template <memory::Reader M>
[[gnu::always_inline]] inline FrameLook look_at_frame(const M& memory, const Layout& layout, const Reach& reach,
                                                      Address code_type, Address frame, PyFrame& out) {
  FrameLook look;
  if ((raw(frame) & 7U) != 0) return {WalkStop::kMisaligned};
  const memory::Fields<M> fields(memory, frame, reach.frame);
  if (!fields.load(layout.frame.previous, look.previous)) return {WalkStop::kUnreadable};
  if (layout.frame.owner != kNoField) {
    constexpr std::uint8_t kLargestOwner = 4;
    std::uint8_t owner = 0;
    if (!fields.load(layout.frame.owner, owner)) return {WalkStop::kUnreadable};
    if (owner > kLargestOwner) return {WalkStop::kBadOwner};
    if (owner >= layout.first_shim_owner) return look;
  }
  std::uint64_t executable = 0;
  if (!fields.load(layout.frame.executable, executable)) return {WalkStop::kUnreadable};
  const Address at{executable & ~layout.executable_tag_mask};
  const memory::Fields<M> code(memory, at, reach.code);
  Address type{};
  if ((raw(at) & 7U) != 0 || !code.load(layout.object.type, type) || type != code_type) {
    look.stop = WalkStop::kNotCode;  // `previous` stays: the caller may skip an innermost frame
    return look;
  }
  out = PyFrame{at, position_of(memory, layout, fields, code), 0};
  look.found = true;
  return look;
}

template <memory::Reader M>
FrameLook look_at_frame(const M& memory, const Layout& layout, Address code_type, Address frame, PyFrame& out) {
  return look_at_frame(memory, layout, Reach(layout), code_type, frame, out);
}

// Calls visit(Address, const FrameLook&, const PyFrame&) for one frame after another, from `frame` outwards: until it
// returns false, or after `most`. Whether a look that found nothing is the end is for `visit` to say.
template <memory::Reader M, typename Visit>
void each_frame(const M& memory, const Layout& layout, Address code_type, Address frame, std::size_t most,
                Visit visit) {
  const Reach reach(layout);
  for (std::size_t depth = 0; depth < most && !is_null(frame); ++depth) {
    PyFrame found;
    const FrameLook look = look_at_frame(memory, layout, reach, code_type, frame, found);
    if (!visit(frame, look, found)) return;
    frame = look.previous;
  }
}

// An entry from C into Python: a _PyCFrame of 3.11 or 3.12.
struct Entry {
  Address frame{};  // its current frame
  Address outer{};  // the entry that it was made in; null for a thread's first
  bool is_sound = false;
  bool is_unlinked = false;  // its current frame has no caller, not even the entry
};

// Looks at the entry at `at`. It is sound if it is `root`, the thread state's own, or if the outermost of its own
// frames was called by the current frame of the entry around it. An entry of more than `most` frames passes for sound:
// none of its callers would be kept anyway. False if it cannot be read.
template <memory::Reader M>
bool look_at_entry(const M& memory, const Layout& layout, Address root, Address at, std::size_t most, Entry& out) {
  Address caller{};
  if (!memory::load_address(memory, offset_by(at, layout.cframe.current_frame), out.frame) ||
      !memory::load_address(memory, offset_by(at, layout.cframe.previous), out.outer))
    return false;
  out.is_sound = at == root;
  if (out.is_sound) return true;
  if (!memory::load_address(memory, offset_by(out.outer, layout.cframe.current_frame), caller)) return false;
  Address frame = out.frame;
  for (std::size_t seen = 0; seen < most; ++seen) {
    std::uint8_t mark = 0;
    Address previous{};
    if ((raw(frame) & 7U) != 0 || !memory.load(offset_by(frame, layout.frame.entry_mark), mark) ||
        !memory::load_address(memory, offset_by(frame, layout.frame.previous), previous))
      return true;
    const bool is_entered = mark >= layout.first_entry_mark;
    out.is_sound = is_entered && previous == caller;
    out.is_unlinked = seen == 0 && is_null(previous) && !out.is_sound;
    if (is_entered) return true;
    frame = previous;
  }
  out.is_sound = true;
  return true;
}

}  // namespace internal

// A walk that says nothing of entries from C.
struct NoEntries {
  static constexpr bool kAreMarked = false;
};

// A walk that marks them (kEntryMark). Up to 3.11 a frame says that it was entered, and `entry` is the _PyCFrame that
// the entry made; from 3.12 on each entry has a frame of its own on the C stack.
struct EntryMarks {
  static constexpr bool kAreMarked = true;
  Address entry{};
};

namespace internal {

// Whether C code entered Python at a frame that was looked at, and where its mark is.
template <memory::Reader M>
bool is_entry(const M& memory, const Layout& layout, Address frame, const FrameLook& look, EntryMarks& entries,
              Address& mark) {
  if (!look.found) {
    mark = frame;
    return look.stop == WalkStop::kComplete;
  }
  std::uint8_t entered = 0;
  if (!layout.entries_are_marked() || !memory.load(offset_by(frame, layout.frame.entry_mark), entered) || entered == 0)
    return false;
  mark = entries.entry;
  if (is_null(mark)) return false;
  if (!memory::load_address(memory, offset_by(mark, layout.cframe.previous), entries.entry)) entries.entry = Address{};
  return true;
}

}  // namespace internal

// Walks from `frame` (see current_frame) outwards into `out`. `code_type` is the address of PyCode_Type.
// Async-signal-safe if `memory` is. When the stop reason is neither kComplete nor kTruncated, `out` must not be used.
template <memory::Reader M, typename Entries = NoEntries>
Walk walk_frames(const M& memory, const Layout& layout, Address code_type, Address frame, std::span<PyFrame> out,
                 [[maybe_unused]] Entries entries = {}) {
  Walk walk;
  const internal::Reach reach(layout);
  // Cycle detection after Brent: remember a frame, twice as long each time, and meet it again in a cycle.
  Address remembered{};
  std::uint32_t steps = 0;
  std::uint32_t next_mark = 64;
  if (is_null(frame)) return walk;
  for (;;) {
    PyFrame found;
    const internal::FrameLook look = internal::look_at_frame(memory, layout, reach, code_type, frame, found);
    if (look.stop == WalkStop::kNotCode && steps == 0) {
      walk.leaf_skipped = true;
    } else if (look.stop != WalkStop::kComplete) {
      walk.stop = look.stop;
      return walk;
    }
    if (look.found) {
      // Only now, as what follows the last frame that fits may be an entry from C and then nothing.
      if (walk.count == out.size()) {
        walk.stop = WalkStop::kTruncated;
        return walk;
      }
      out[walk.count++] = found;
    }
    if constexpr (Entries::kAreMarked) {
      Address mark{};
      if (internal::is_entry(memory, layout, frame, look, entries, mark)) {
        if (walk.count == out.size()) {
          walk.stop = WalkStop::kTruncated;
          return walk;
        }
        out[walk.count++] = PyFrame{mark, kEntryMark, 0};
      }
    }
    if (is_null(look.previous)) {
      walk.outermost = frame;
      return walk;
    }
    frame = look.previous;
    if (frame == remembered) {
      walk.stop = WalkStop::kCycle;
      return walk;
    }
    if (++steps == next_mark) {
      remembered = frame;
      next_mark *= 2;
    }
  }
}

namespace internal {

// Whether a walk that has come to the frame `outermost`, which has no caller, has come to the end of the thread's
// stack.
template <memory::Reader M>
bool is_end(const M& memory, const Layout& layout, Address outermost) {
  constexpr std::uint8_t kGenerator = 1;
  constexpr std::uint8_t kExecuting = 0;
  std::uint8_t owner = 0;
  std::uint8_t state = 0;
  if (is_null(outermost) || layout.frame.owner == kNoField) return true;
  if (!memory.load(offset_by(outermost, layout.frame.owner), owner)) return false;
  if (layout.threads_begin_with_entries) return owner >= layout.first_shim_owner;
  // A generator may have been resumed by C code with nothing around it; but of one that rests this is left over.
  const Address generator{raw(outermost) - layout.generator.frame};
  return owner != kGenerator || layout.generator.state == kNoField ||
         (memory.load(offset_by(generator, layout.generator.state), state) && state == kExecuting);
}

// As walk_frames, of a frame that is a thread's innermost one.
template <memory::Reader M, typename Entries>
Walk walk_to_end(const M& memory, const Layout& layout, Address code_type, Address frame, std::span<PyFrame> out,
                 Entries entries) {
  Walk walk = walk_frames(memory, layout, code_type, frame, out, entries);
  const bool is_cut = walk.stop == WalkStop::kComplete && !is_end(memory, layout, walk.outermost);
  if (is_cut) walk.stop = WalkStop::kUnlinked;
  return walk;
}

// What is known of a new frame's caller.
enum class Caller : std::uint8_t { kIsIt, kMayBeAnother, kIsAnother };

// Where the first frame of a thread is in its first chunk: behind its head, and a word that keeps it from being given
// back.
inline constexpr std::uint64_t kFirstFrame = 32;

// Whether the first frame that a thread can have is at `frame`.
template <memory::Reader M>
bool is_lowest(const M& memory, const Layout& layout, Address tstate, Address frame) {
  Address chunk{};
  Address below{};
  return memory::load_address(memory, offset_by(tstate, layout.tstate.chunk), chunk) &&
         frame == offset_by(chunk, kFirstFrame) && memory::load_address(memory, chunk, below) && is_null(below);
}

// Whether an entry has no frame because there is none: a greenlet makes one of its own around what it runs, which may
// be a function in C. An entry of Python's that is not filled in yet may look the same, but its frame has room in a
// chunk.
template <memory::Reader M>
bool has_no_frames(const M& memory, const Layout& layout, Address tstate, Address root, const Entry& entry) {
  if (!is_null(entry.frame) || entry.outer != root || layout.tstate.chunk == kNoField) return false;
  Address around{};
  Address chunk{};
  Address below{};
  Address top{};
  if (!memory::load_address(memory, offset_by(root, layout.cframe.current_frame), around) || !is_null(around) ||
      !memory::load_address(memory, offset_by(tstate, layout.tstate.chunk), chunk))
    return false;
  return is_null(chunk) || (memory::load_address(memory, chunk, below) && is_null(below) &&
                            memory::load_address(memory, offset_by(tstate, layout.tstate.chunk + 8), top) &&
                            top == offset_by(chunk, kFirstFrame));
}

// Whether the frame `callee`, which has run no instruction yet, was called by its `previous`. GCC has CPython 3.12 make
// it the innermost frame some instructions before that is written, where a call has keywords, or is not specialised.
// Until then the caller of another frame that was at that place is there: the frame below, or what C code has left. But
// the frame below would not have called this one if it has resumed a generator, which did: it would go on elsewhere.
template <memory::Reader M>
Caller calls_it(const M& memory, const Layout& layout, Address tstate, Address callee) {
  Address caller{};
  std::uint8_t owner = 0;
  std::uint8_t goes_on[2] = {};
  if (layout.frame.return_offset == kNoField) return Caller::kIsIt;
  if (!memory::load_address(memory, offset_by(callee, layout.frame.previous), caller) || is_null(caller) ||
      !memory.load(offset_by(caller, layout.frame.owner), owner))
    return Caller::kIsAnother;
  if (owner >= layout.first_shim_owner)
    return is_lowest(memory, layout, tstate, callee) ? Caller::kIsIt : Caller::kMayBeAnother;
  const Address at = offset_by(caller, layout.frame.return_offset);
  const bool is_read = memory.load(at, goes_on[0]) && memory.load(offset_by(at, 1), goes_on[1]);
  return is_read && goes_on[0] == 0 && goes_on[1] == 0 ? Caller::kIsIt : Caller::kIsAnother;
}

}  // namespace internal

// Walks all frames of a thread state. As walk_frames, but for one case of 3.11 and 3.12: C code that enters Python
// links a new _PyCFrame before it fills it in. Until then it holds whatever lay on the C stack, often an earlier entry
// with frames that have ended. It is believed only if it was made where it says it was; else the frame that C code was
// called from is the innermost one, if it proves to be one. So it is if a frame that has not begun may have been
// entered elsewhere (see calls_it). And the outermost frame must be one that a thread's stack can end at: what ends
// elsewhere is cut (kUnlinked). A greenlet that runs C code has no frames (see has_no_frames).
template <memory::Reader M, typename Entries = NoEntries>
Walk walk_thread(const M& memory, const Layout& layout, Address code_type, Address tstate, std::span<PyFrame> out,
                 [[maybe_unused]] Entries entries = {}) {
  Walk walk;
  walk.stop = WalkStop::kUnreadable;
  Address frame{};
  if (!current_frame(memory, layout, tstate, frame)) return walk;
  if (layout.frame_style != FrameStyle::kCFrame)
    return internal::walk_to_end(memory, layout, code_type, frame, out, entries);

  Address entry{};
  if (!memory::load_address(memory, offset_by(tstate, layout.tstate.current_frame), entry)) return walk;
  const Address root = offset_by(tstate, layout.tstate.root_entry);
  const bool is_first = entry == root;
  constexpr int kEntriesTried = 2;
  for (int tried = 0; tried < kEntriesTried; ++tried) {
    internal::Entry found;
    if (is_null(entry) || !internal::look_at_entry(memory, layout, root, entry, out.size(), found)) break;
    if (found.is_unlinked && tried == 0) {
      walk.stop = WalkStop::kUnlinked;
      return walk;
    }
    if (tried == 0 && internal::has_no_frames(memory, layout, tstate, root, found)) return Walk{};
    if (found.is_sound) {
      if constexpr (Entries::kAreMarked) entries.entry = entry;
      walk = internal::walk_to_end(memory, layout, code_type, found.frame, out, entries);
      walk.leaf_skipped = walk.leaf_skipped || tried > 0;
      // Else it was made here, but is left over from an earlier call, and its frames have been overwritten since.
      const bool is_empty = tried > 0 && walk.count == 0;  // it is entered for the first time, or there is a fault
      if (is_proven(walk.stop) && !is_empty) {
        const bool is_new = !walk.leaf_skipped && walk.count > 0 && out[0].position == kBeforeFirst;
        const internal::Caller caller =
            is_new ? internal::calls_it(memory, layout, tstate, found.frame) : internal::Caller::kIsIt;
        if (caller == internal::Caller::kIsIt) return walk;
        if (caller == internal::Caller::kIsAnother || found.outer == root) {
          walk.stop = WalkStop::kUnlinked;
          return walk;
        }
      }
    }
    entry = found.outer;
  }
  // The fault may lie in what the newest entry says, unless it is the thread's first, which is never half made.
  if (!is_first) walk.stop = WalkStop::kEntering;
  return walk;
}

}  // namespace plimsoll::cpython
