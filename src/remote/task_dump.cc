#include "remote/task_dump.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>

#include "base/clock.h"
#include "os/os.h"
#include "remote/standing.h"
#include "remote/task_picture.h"
#include "remote/thread_states.h"

namespace plimsoll::remote {
namespace {

// A thread that runs on is looked at so often, and so long, before two readings are compared.
constexpr int kTries = 50;
constexpr std::int64_t kPatienceNs = 2'000'000'000;

// The tasks that are the same in both readings, which are in the same order in both.
std::size_t keep_what_agrees(const TaskReading& before, TaskReading& now) {
  boost::unordered_flat_map<std::uint64_t, const ReadTask*> known;
  for (const ReadTask& task : before.tasks) known.emplace(raw(task.task), &task);
  return std::erase_if(now.tasks, [&](const ReadTask& task) {
    const auto same = known.find(raw(task.task));
    return same == known.end() || *same->second != task;
  });
}

// Reads the threads one after another, and makes one picture of it.
class TaskDumper {
 public:
  TaskDumper(const Target& target, const cpython::TaskLayout& tasks)
      : target_(target), tasks_(tasks), memory_(target.memory()), pages_(memory_) {}

  TaskDump run() {
    const std::vector<os::Task> kernel_tasks = os::tasks_of(target_.pid);
    std::vector<ThreadState> states = thread_states(pages_, target_.layout, target_.runtime);
    if (is_null(target_.code_type)) target_.code_type = find_code_type(pages_, target_.layout, states);
    std::reverse(states.begin(), states.end());  // the newest comes first
    std::vector<Address> interpreters;
    for (const ThreadState& state : states) {
      const os::Task* task = task_of(kernel_tasks, state);
      if (task == nullptr) continue;
      const bool is_first =
          std::find(interpreters.begin(), interpreters.end(), state.interpreter) == interpreters.end();
      if (is_first) interpreters.push_back(state.interpreter);
      picture_.take(read(*task, state, is_first ? state.interpreter : Address{}), *task);
    }
    TaskDump dump = picture_.finish();
    dump.moved = moved_;
    return dump;
  }

 private:
  TaskReading read(const os::Task& task, const ThreadState& state, Address interpreter) {
    const os::ThreadProbe probe(task.tid, os::ThreadProbe::Keep::kOpen, static_cast<std::int32_t>(target_.pid));
    const cpython::TaskPlaces places{target_.layout, tasks_, target_.code_type};
    const std::int64_t end_ns = monotonic_ns() + kPatienceNs;
    TaskReading before;
    TaskReading now;
    for (int tried = 0; tried < kTries && (tried < 2 || monotonic_ns() < end_ns); ++tried) {
      std::optional<Standing> standing = standing_still(probe);
      shared_cpu_.begin_look();
      if (!standing) standing = shared_cpu_.stand_beside(probe);
      pages_.forget();
      before = std::exchange(now, read_tasks(pages_, places, state, interpreter));
      if (standing && standing->goes_on()) return now;
    }
    moved_ += keep_what_agrees(before, now);
    return now;
  }

  Target target_;
  const cpython::TaskLayout& tasks_;
  const memory::RemoteReader memory_;
  memory::PagedReader pages_;
  SharedCpu shared_cpu_;
  TaskPicture picture_;
  std::size_t moved_ = 0;
};

}  // namespace

Result<TaskDump> take_task_dump(const Target& target) {
  PLIMSOLL_TRY(cpython::tells_of_tasks(target.layout.version));
  TaskDump dump;
  const std::optional<Address> table = find_asyncio_debug(target.pid);
  if (table) {
    const Result<cpython::TaskLayout> layout =
        cpython::find_task_layout(target.memory(), target.layout, target.runtime, *table);
    if (!layout.ok()) return layout.error();
    dump = TaskDumper(target, layout.value()).run();
  }
  dump.has_asyncio = table.has_value();
  dump.pid = target.pid;
  dump.version = target.layout.version;
  dump.command = os::command_line(target.pid);
  dump.directory = os::working_directory(target.pid);
  return dump;
}

}  // namespace plimsoll::remote
