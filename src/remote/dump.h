// remote/dump.h: what all threads of a process do now.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/activity.h"
#include "base/result.h"
#include "cpython/code_object.h"
#include "cpython/frame_variables.h"
#include "cpython/line_table.h"
#include "os/process.h"
#include "remote/native_reader.h"
#include "remote/target.h"

namespace plimsoll::remote {

// A frame with a name and a line.
struct DumpedFrame {
  // Python, or a function of machine code, which has no line; its file is the program or library.
  enum class Kind : std::uint8_t { kPython, kNative };

  std::string function;
  std::string file;
  cpython::Location at;
  Kind kind = Kind::kPython;
  cpython::FrameVariables locals = {};  // if they were asked for
};

// One of machine code.
inline DumpedFrame native_frame(const capture::NativeFunction& function) {
  return {function.name, function.file, {}, DumpedFrame::Kind::kNative};
}
inline constexpr const char* kCountsDisagree =
    "which native function called which of Python's is not known: their counts disagree";

// A frame of Python's.
inline DumpedFrame python_frame(const cpython::Layout& layout, const cpython::CodeInfo& info, std::int32_t position) {
  return {info.name, info.file,
          cpython::locate_near(layout.line_table_style, info.line_table, info.first_line, position)};
}

// A thread as it was at one moment.
struct DumpedThread {
  // Whether it stands still because somebody wants it to. Of a core file that is not known.
  enum class State : std::uint8_t { kGoing, kStopped, kEnded, kUnknown };

  os::Task task;
  State state = State::kGoing;
  Activity activity = Activity::kOther;  // of one that is going
  bool has_python = false;               // the interpreter knows it
  bool holds_gil = false;
  bool is_truncated = false;
  std::size_t interpreter = 0;      // 0: the main one, 1, 2, ...: others
  std::vector<DumpedFrame> frames;  // innermost first
  std::string problem;  // why there are no frames although there should be, or what is wrong with them; or ""
  // Where it cannot be told which of them called which, the frames of machine code by themselves.
  std::vector<DumpedFrame> native_frames;
  std::string native_problem;  // likewise of frames of machine code
  std::string locals_problem;  // likewise of variables
  std::int32_t signal = 0;     // that it got, in a core file; 0: none
};

// A greenlet, as the module greenlet has it, that has not ended.
struct DumpedGreenlet {
  // Its thread runs it, so that its frames are the thread's; it is suspended; it has not begun.
  enum class State : std::uint8_t { kRunning, kSuspended, kNew };

  Address address{};
  std::string type;  // its class: "gevent._gevent_cgreenlet.Greenlet"
  std::string name;  // its attribute `name`, if that is a text
  State state = State::kNew;
  bool is_main = false;               // its thread began with it
  std::optional<Tid> thread;          // as far as it is known
  std::optional<std::size_t> parent;  // in GreenletDump::greenlets
  std::vector<DumpedFrame> frames;    // innermost first
  bool is_truncated = false;          // the outermost frames are missing
};

// All greenlets of a process: those of a thread together, its main one first.
struct GreenletDump {
  std::vector<DumpedGreenlet> greenlets;
  std::string problem;  // why some, or all, are missing; or ""
};

// All threads of a process: those of Python as the interpreter lists them, from the oldest, then the others.
struct Dump {
  // Where it is from.
  enum class Source : std::uint8_t { kProcess, kCoreFile };

  os::Pid pid{};
  cpython::Version version;
  std::string command;
  std::string directory;  // its current one
  std::vector<DumpedThread> threads;
  std::optional<GreenletDump> greenlets = {};  // none: the module greenlet is not loaded
  std::int64_t longest_stop_ns = 0;            // that a thread was held for; 0 if none was
  Source source = Source::kProcess;
  std::uint64_t missing_bytes = 0;  // of a core file that is cut short
};

// What is wanted beside the stacks.
struct DumpOptions {
  NativeFrames native = NativeFrames::kNo;
  std::optional<cpython::ValueLimits> locals;  // the frames' variables, and how much of them
};

// Looks at every thread, each for itself: a thread's stack is true, but that of the next one is of a moment later. For
// native frames a thread that runs is stopped while its stack is copied. Variables are read as long as the stack is
// proven to be still; objects that they share with other threads may change meanwhile.
Result<Dump> take_dump(const Target& target, const DumpOptions& options = {});

}  // namespace plimsoll::remote
