// remote/dump.h: what all threads of a process do now.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/activity.h"
#include "base/result.h"
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
};

// A thread as it was at one moment.
struct DumpedThread {
  // Whether it stands still because somebody wants it to.
  enum class State : std::uint8_t { kGoing, kStopped, kEnded };

  os::Task task;
  State state = State::kGoing;
  Activity activity = Activity::kOther;  // of one that is going
  bool has_python = false;               // the interpreter knows it
  bool holds_gil = false;
  bool is_truncated = false;
  std::size_t interpreter = 0;      // 0: the main one, 1, 2, ...: others
  std::vector<DumpedFrame> frames;  // innermost first
  std::string problem;  // why there are no frames although there should be, or what is wrong with them; or ""
  // Up to Python 3.10, where nobody can tell which of them called which, the frames of machine code by themselves.
  std::vector<DumpedFrame> native_frames;
  std::string native_problem;  // likewise of frames of machine code
};

// All threads of a process: those of Python as the interpreter lists them, from the oldest, then the others.
struct Dump {
  os::Pid pid{};
  cpython::Version version;
  std::string command;
  std::string directory;  // its current one
  std::vector<DumpedThread> threads;
  std::int64_t longest_stop_ns = 0;  // that a thread was held for; 0 if none was
};

// Looks at every thread, each for itself: a thread's stack is true, but that of the next one is of a moment later. For
// native frames a thread that runs is stopped while its stack is copied.
Result<Dump> take_dump(const Target& target, NativeFrames native = NativeFrames::kNo);

}  // namespace plimsoll::remote
