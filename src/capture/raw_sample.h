// capture/raw_sample.h: the plain types of the pipeline. RawSample -> Sample -> (profile) Profile -> bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/activity.h"
#include "base/ids.h"
#include "capture/tags.h"
#include "cpython/line_table.h"
#include "cpython/walk.h"
#include "native/unwind.h"

namespace plimsoll::capture {

// A thread as Plimsoll knows it: given at first sight, never reused within a session, unlike the kernel's id.
using ThreadSerial = Id<struct ThreadSerialTag>;
// A code object as Plimsoll knows it: an address may be reused by a later object, a CodeId never is.
using CodeId = Id<struct CodeTag>;

// What a look at a thread found, as written into the ring by its signal handler or by the wait reader: this header,
// with has_native a RawNative and its frames, then `frame_count` PyFrames, innermost first, and then to the end of the
// record, of a thread in a task's step, those who await the task (cpython/awaiting.h).
struct RawSample {
  std::int64_t time_ns = 0;    // CLOCK_MONOTONIC, taken after the record was reserved
  std::int64_t weight_ns = 0;  // the thread's CPU time since its previous sample, or the time that it waited
  ThreadSerial thread;
  std::uint32_t frame_count = 0;
  cpython::WalkStop stop = cpython::WalkStop::kComplete;  // anything but kComplete, kTruncated: no frames
  // Whether there was a Python stack to walk.
  enum class Python : std::uint8_t {
    kFrames,   // the thread has a Python thread state
    kNoState,  // it has none: a thread of native code
  } python = Python::kFrames;
  std::uint8_t leaf_skipped = 0;
  Activity activity = Activity::kRunning;
  // Where the stack is.
  enum class Stack : std::uint8_t {
    kHere,      // in this record
    kSame,      // it is that of the thread's last record that was not kRunning: the same wait goes on
    kSameLast,  // likewise, and nothing of the thread follows
    kOnLast,    // here are its innermost slots; `same_outer` more are the outermost of the thread's last such record
  } stack = Stack::kHere;
  // What the record tells of. All but kTick are in raw_allocation.h.
  enum class Kind : std::uint8_t { kTick, kAllocation, kRelease } kind = Kind::kTick;
  std::uint8_t has_native = 0;
  std::uint8_t reserved = 0;
  TagNumber tags = 0;
  std::uint32_t same_outer = 0;  // slots
  std::uint32_t unused = 0;
};
static_assert(sizeof(RawSample) == 48);

// The machine code that was on the stack: this header, `count` NativeFrames, innermost first, and with kNoModule a copy
// of the stack (native_sample.h). The PyFrames have entries from C among them (cpython::kEntryMark).
struct RawNative {
  Address stack_pointer{};  // of the innermost
  std::uint32_t count = 0;
  native::UnwindStop stop = native::UnwindStop::kComplete;
  std::uint8_t leaf = 0;  // up to Python 3.10: LeafAt (loop_calls.h)
  std::uint8_t reserved[2] = {};
  bool operator==(const RawNative&) const = default;
};
static_assert(sizeof(RawNative) == 16);

// A frame with a name and a line, root first in a Sample. Functions of machine code have ids from the same row of
// numbers, and no line: `at.line` is how many bytes from the function's first one the instruction is.
struct SampleFrame {
  CodeId code;
  cpython::Location at;
  bool operator==(const SampleFrame&) const = default;
};

// A function of machine code.
struct NativeFunction {
  std::string name;
  std::string file;  // the path of the program or library; "[vdso]"; "[jit]" if it was made at run time; empty: unknown
  std::uint64_t start = 0;  // where it begins, by the addresses of that file
  std::string build_id{};   // of the file, as bytes; empty if it has none
};

// A resolved sample. `frames` and `tags` are valid during the call that passes it only.
struct Sample {
  std::int64_t time_ns = 0;    // CLOCK_MONOTONIC
  std::int64_t weight_ns = 0;  // as in RawSample
  Activity activity = Activity::kRunning;
  ThreadSerial thread;
  bool is_truncated = false;  // the outermost frames are missing
  bool has_python = true;     // false: a thread of native code; no frames
  std::span<const SampleFrame> frames;
  TagNumber tag_number = 0;
  const Tags* tags = nullptr;  // null: none
};

// A process whose threads are recorded, if it is not the only one.
struct ProcessInfo {
  std::uint32_t number = 0;  // counted from 0, the one that the recording began with
  std::int32_t pid = 0;
  std::string name;
};

// What is known of a thread. Reported when first seen and again when something has changed.
struct ThreadInfo {
  ThreadSerial serial;
  Tid tid{};
  std::string name;
  std::int64_t start_ns = 0;  // CLOCK_MONOTONIC
  std::int64_t end_ns = 0;    // last seen
  std::int64_t cpu_ns = 0;    // used while profiled
  std::uint32_t process = 0;  // ProcessInfo::number
  bool has_ended = false;     // no more is to come, but what is in the ring already
};

// Why samples, or the time they stand for, are not in the profile.
enum class DropReason : std::uint8_t {
  kRingFull,
  kUnreadable,
  kEntering,
  kUnlinked,
  kMisaligned,
  kBadOwner,
  kNotCode,
  kCycle,
  kUnknownCode,     // a code object could not be read, or safe mode had not seen it before
  kReentered,       // a tick arrived while the previous one was handled
  kForeignSignal,   // a signal that no tick of ours sent
  kMoved,           // the thread ran on while its frames were read, and never stood still for long enough
  kSignalBlocked,   // the thread blocks our signal: its CPU time passed without samples
  kThreadEnded,     // CPU time between a thread's last sample and its end
  kMetLate,         // CPU time of a thread that C code has started, until it was noticed
  kTooManyThreads,  // no slot for the thread, or no clock
  kNotTold,         // the kernel could not be asked about the thread: no more files could be opened
  kHooksRemoved,    // another tool took out the hooks on allocations: those after that are not seen
  kAllocation,      // an allocation was sampled, but the ring was full or the thread not known
  // Samples that are there, but lack some of their native frames (UnwindStop); they stand for no lost time.
  kNativeTruncated,
  kNativeNoModule,
  kNativeNoTable,
  kNativeNoRule,
  kNativeExpression,
  kNativeRegister,
  kNativeUnreadable,
  kNativeStuck,
  kNativeUnmatched,  // where Python was entered is in no native frame: they are left out
  kCount,
};
inline constexpr std::size_t kDropReasonCount = static_cast<std::size_t>(DropReason::kCount);
const char* text(DropReason reason);
// Whether it says what a sample lacks, and not that there is none.
constexpr bool is_of_native_frames(DropReason reason) { return reason >= DropReason::kNativeTruncated; }

constexpr DropReason reason_of(cpython::WalkStop stop) {
  switch (stop) {
    case cpython::WalkStop::kMisaligned: return DropReason::kMisaligned;
    case cpython::WalkStop::kBadOwner: return DropReason::kBadOwner;
    case cpython::WalkStop::kNotCode: return DropReason::kNotCode;
    case cpython::WalkStop::kCycle: return DropReason::kCycle;
    case cpython::WalkStop::kEntering: return DropReason::kEntering;
    case cpython::WalkStop::kUnlinked: return DropReason::kUnlinked;
    default: return DropReason::kUnreadable;
  }
}

constexpr DropReason reason_of(native::UnwindStop stop) {
  switch (stop) {
    case native::UnwindStop::kTruncated: return DropReason::kNativeTruncated;
    case native::UnwindStop::kNoModule: return DropReason::kNativeNoModule;
    case native::UnwindStop::kNoTable: return DropReason::kNativeNoTable;
    case native::UnwindStop::kNoRule: return DropReason::kNativeNoRule;
    case native::UnwindStop::kExpression: return DropReason::kNativeExpression;
    case native::UnwindStop::kRegister: return DropReason::kNativeRegister;
    case native::UnwindStop::kUnreadable: return DropReason::kNativeUnreadable;
    default: return DropReason::kNativeStuck;
  }
}

// Samples of threads in a task's step, where they are told apart. They are no drops: such a sample is there, if only
// with the event loop's frames.
struct TaskCounts {
  std::uint64_t found = 0;       // with those who await the task
  std::uint64_t unreadable = 0;  // without
};

// How often, and for how much CPU time, since the start of the session.
struct DropTotal {
  std::uint64_t count = 0;
  std::int64_t cpu_ns = 0;
};

}  // namespace plimsoll::capture
