#include "remote/task_dump.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <map>
#include <string>

#include "base/clock.h"
#include "os/os.h"
#include "remote/asyncio_callbacks.h"
#include "remote/program_names.h"
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
  // `states` are of its threads, and there is a task of the kernel for each.
  TaskDumper(const Target& target, const cpython::TaskLayout& tasks, std::vector<ThreadState> states)
      : target_(target), tasks_(tasks), states_(std::move(states)), memory_(target.memory()), pages_(memory_) {}

  TaskDump run() {
    const std::vector<os::Task> kernel_tasks = os::tasks_of(target_.pid);
    std::erase_if(states_, [&](const ThreadState& state) { return task_of(kernel_tasks, state) == nullptr; });
    std::map<std::uint64_t, std::string> names;  // of the threads of an interpreter
    for (const TaskShare& share : share_out(states_)) {
      if (!is_null(share.interpreter)) names.merge(program_names(target_, share.interpreter));
      os::Task task = *task_of(kernel_tasks, share.thread);
      if (const auto name = names.find(share.thread.pthread); name != names.end()) task.name = name->second;
      picture_.take(read(task, share), task);
    }
    TaskDump dump = picture_.finish();
    dump.moved = moved_;
    return dump;
  }

 private:
  TaskReading read(const os::Task& task, const TaskShare& share) {
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
      const std::vector<Address> loops = running_loops(pages_, places, states_);
      before = std::exchange(now, read_tasks(pages_, places, share, loops));
      if (standing && standing->goes_on()) return now;
    }
    moved_ += keep_what_agrees(before, now);
    return now;
  }

  const Target& target_;
  const cpython::TaskLayout& tasks_;
  std::vector<ThreadState> states_;  // the oldest thread first
  const memory::RemoteReader memory_;
  memory::PagedReader pages_;
  SharedCpu shared_cpu_;
  TaskPicture picture_;
  std::size_t moved_ = 0;
};

}  // namespace

Result<TaskDump> take_task_dump(const Target& of) {
  PLIMSOLL_TRY(cpython::knows_awaiters(of.layout.version));
  Target target = of;
  const memory::RemoteReader memory = target.memory();
  std::vector<ThreadState> states = thread_states(memory, target.layout, target.runtime);
  learn_ids(memory, os::tasks_of(target.pid), states);
  if (is_null(target.code_type)) target.code_type = find_code_type(memory, target.layout, states);
  std::reverse(states.begin(), states.end());  // the newest comes first
  const Result<std::optional<cpython::TaskLayout>> layout = locate_tasks(
      memory, target.layout, target.code_type, target.runtime, [&] { return find_asyncio_debug(target.pid); });
  if (!layout.ok()) return layout.error();
  TaskDump dump;
  dump.has_asyncio = layout.value().has_value();
  if (dump.has_asyncio) dump = TaskDumper(target, *layout.value(), std::move(states)).run();
  dump.pid = target.pid;
  dump.version = target.layout.version;
  dump.command = os::command_line(target.pid);
  dump.directory = os::working_directory(target.pid);
  return dump;
}

}  // namespace plimsoll::remote
