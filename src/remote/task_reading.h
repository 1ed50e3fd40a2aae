// remote/task_reading.h: the tasks of one thread of another process, or of a core file, read once.
#pragma once

#include <vector>

#include "cpython/tasks.h"
#include "memory/image.h"
#include "memory/remote.h"
#include "remote/task_dump.h"
#include "remote/thread_states.h"

namespace plimsoll::remote {

// A task as one reading has it.
struct ReadTask {
  Address task{}, loop{};
  std::string name;
  std::vector<Address> awaiters;  // tasks, by address; Futures in between are passed over
  bool has_more_awaiters = false;
  std::vector<TaskFrame> frames;  // innermost first
  cpython::AwaitEnd end{};
  Address awaited{};
  std::string awaited_type;
  bool operator==(const ReadTask&) const = default;
};

// What one reading of a thread has found. Only as true as the memory stood still.
struct TaskReading {
  Address running_loop{}, running_task{};
  std::vector<ReadTask> tasks;
  std::size_t unreadable = 0;  // in the lists, but no tasks
  bool is_whole = true;        // the lists came round
};

// Reads the tasks that were made in the thread and, if it is given, those in the list of the interpreter. Of a process
// that runs, or of its core file.
template <memory::Reader M>
TaskReading read_tasks(const M& memory, const cpython::TaskPlaces& places, const ThreadState& thread,
                       Address interpreter);
extern template TaskReading read_tasks(const memory::PagedReader&, const cpython::TaskPlaces&, const ThreadState&,
                                       Address);
extern template TaskReading read_tasks(const memory::Image&, const cpython::TaskPlaces&, const ThreadState&, Address);

}  // namespace plimsoll::remote
