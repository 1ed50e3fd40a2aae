// remote/dump.h: what all threads of a process do now.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/activity.h"
#include "base/result.h"
#include "cpython/line_table.h"
#include "os/process.h"
#include "remote/target.h"

namespace plimsoll::remote {

// A frame with a name and a line.
struct DumpedFrame {
  std::string function;
  std::string file;
  cpython::Location at;
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
};

// All threads of a process: those of Python as the interpreter lists them, from the oldest, then the others.
struct Dump {
  os::Pid pid{};
  cpython::Version version;
  std::string command;
  std::string directory;  // its current one
  std::vector<DumpedThread> threads;
};

// Looks at every thread, each for itself: a thread's stack is true, but that of the next one is of a moment later.
Result<Dump> take_dump(const Target& target);

}  // namespace plimsoll::remote
