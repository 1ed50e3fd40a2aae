// remote/task_dump.h: asyncio's tasks in another process, and who awaits whom.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cpython/tasks.h"
#include "os/process.h"
#include "remote/target.h"

namespace plimsoll::remote {

// A frame of a task's coroutine, or of what that has called if it runs.
struct TaskFrame {
  std::shared_ptr<const cpython::CodeInfo> code;
  cpython::Location at;
  bool operator==(const TaskFrame& other) const { return at == other.at && *code == *other.code; }
};

// A task that has not ended, or only just.
struct DumpedTask {
  // What it does: kStepping is in a step as kRunning is, but has begun another task in it, which runs; kYielded lets
  // others go first.
  enum class State : std::uint8_t { kRunning, kStepping, kWaiting, kNew, kYielded, kEnded, kUnknown };

  std::string name;
  std::size_t loop = 0;  // in TaskDump::loops
  State state = State::kUnknown;
  std::vector<TaskFrame> frames;            // innermost first
  bool is_truncated = false;                // the innermost frames are missing
  std::string awaited_type;                 // of kWaiting, what its innermost coroutine waits for: Future, ...
  std::optional<std::size_t> awaited_task;  // the same in TaskDump::tasks, if it is one of them
  std::vector<std::size_t> awaited_by;      // in TaskDump::tasks, in their order
  std::size_t other_awaiters = 0;           // that are not among them
};

// An event loop that has tasks, or runs.
struct DumpedLoop {
  std::optional<os::Task> thread;           // that it runs in; none: it does not run
  std::optional<std::size_t> running_task;  // in TaskDump::tasks
  std::size_t tasks = 0;
};

// All tasks of a process that asyncio itself knows: those of asyncio.Task and of classes derived from it.
struct TaskDump {
  os::Pid pid{};
  cpython::Version version;
  std::string command;
  std::string directory;          // its current one
  bool has_asyncio = true;        // the module is loaded; false: there are no tasks
  std::vector<DumpedLoop> loops;  // those that run first, from the interpreter's oldest thread on
  std::vector<DumpedTask> tasks;  // those of a thread as they were made
  std::size_t moved = 0;          // tasks that are left out, as they were not the same in two readings
  std::size_t unreadable = 0;     // tasks that are left out, as their memory made no sense
  bool is_cut = false;            // there are more than could be read
  bool is_of_core_file = false;
  std::uint64_t missing_bytes = 0;  // of a core file that is cut short
};

// Looks at the tasks of one thread after another. Those of a thread that stands still, or is made to (standing.h), are
// as they were at one moment; of others each task is believed if two readings agree. An error if the version does not
// tell where its tasks are.
Result<TaskDump> take_task_dump(const Target& target);

}  // namespace plimsoll::remote
