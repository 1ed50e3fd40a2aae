// remote/task_reading.h: the tasks of one thread of another process, or of a core file, read once.
#pragma once

#include <span>
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

// Which tasks are read with a thread: those that were made in it and, if it is given, those in the list of the
// interpreter. Up to 3.13, where one list has the tasks of all threads: those of the event loop that it runs and, if
// `interpreter` is given, those of loops that no thread runs.
struct TaskShare {
  ThreadState thread;
  Address interpreter{};
};

// One for each thread; of each interpreter the first one gets what belongs to no thread.
std::vector<TaskShare> share_out(const std::vector<ThreadState>& threads);

// The event loops that threads run, by address. Up to 3.13; else none.
template <memory::Reader M>
std::vector<Address> running_loops(const M& memory, const cpython::TaskPlaces& places,
                                   const std::vector<ThreadState>& threads);

// Of a process that runs, or of its core file. `loops` are the running ones of all threads.
template <memory::Reader M>
TaskReading read_tasks(const M& memory, const cpython::TaskPlaces& places, const TaskShare& share,
                       std::span<const Address> loops);

extern template std::vector<Address> running_loops(const memory::PagedReader&, const cpython::TaskPlaces&,
                                                   const std::vector<ThreadState>&);
extern template std::vector<Address> running_loops(const memory::Image&, const cpython::TaskPlaces&,
                                                   const std::vector<ThreadState>&);
extern template TaskReading read_tasks(const memory::PagedReader&, const cpython::TaskPlaces&, const TaskShare&,
                                       std::span<const Address>);
extern template TaskReading read_tasks(const memory::Image&, const cpython::TaskPlaces&, const TaskShare&,
                                       std::span<const Address>);

}  // namespace plimsoll::remote
