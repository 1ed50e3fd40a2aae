#include "remote/task_dump.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>

#include "base/clock.h"
#include "os/os.h"
#include "remote/standing.h"
#include "remote/task_reading.h"
#include "remote/thread_states.h"

namespace plimsoll::remote {
namespace {

// A thread that runs on is looked at so often, and so long, before two readings are compared.
constexpr int kTries = 50;
constexpr std::int64_t kPatienceNs = 2'000'000'000;

// Who awaits whom, of all tasks together.
constexpr std::size_t kMostEdges = 1'000'000;

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
      take(read(*task, state, is_first ? state.interpreter : Address{}), *task);
    }
    connect();
    return std::move(out_);
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
    out_.moved += keep_what_agrees(before, now);
    return now;
  }

  std::size_t loop_number(Address loop) {
    const auto [place, is_new] = loops_.try_emplace(raw(loop), out_.loops.size());
    if (is_new) out_.loops.emplace_back();
    return place->second;
  }

  void take(TaskReading reading, const os::Task& thread) {
    out_.unreadable += reading.unreadable;
    out_.is_cut = out_.is_cut || !reading.is_whole;
    if (!is_null(reading.running_loop)) out_.loops[loop_number(reading.running_loop)].thread = thread;
    if (!is_null(reading.running_task)) running_.push_back({reading.running_loop, reading.running_task});
    for (ReadTask& task : reading.tasks) {
      if (read_.size() == cpython::kMostTasks)
        out_.is_cut = true;
      else if (numbers_.try_emplace(raw(task.task), read_.size()).second)
        read_.push_back(std::move(task));
    }
  }

  [[nodiscard]] std::optional<std::size_t> number_of(Address task) const {
    const auto found = numbers_.find(raw(task));
    return found == numbers_.end() ? std::nullopt : std::optional(found->second);
  }

  static DumpedTask::State state_of(cpython::AwaitEnd end) {
    using cpython::AwaitEnd;
    switch (end) {
      case AwaitEnd::kFuture:
      case AwaitEnd::kOther: return DumpedTask::State::kWaiting;
      case AwaitEnd::kExecuting: return DumpedTask::State::kStepping;
      case AwaitEnd::kNothing: return DumpedTask::State::kYielded;
      case AwaitEnd::kNotBegun: return DumpedTask::State::kNew;
      case AwaitEnd::kEnded: return DumpedTask::State::kEnded;
      case AwaitEnd::kTooDeep:
      case AwaitEnd::kUnreadable: break;
    }
    return DumpedTask::State::kUnknown;
  }

  DumpedTask connected(ReadTask& read) {
    DumpedTask task;
    task.name = std::move(read.name);
    task.loop = loop_number(read.loop);
    ++out_.loops[task.loop].tasks;
    task.state = state_of(read.end);
    task.frames = std::move(read.frames);
    task.is_truncated = task.state == DumpedTask::State::kUnknown;
    task.awaited_type = std::move(read.awaited_type);
    if (task.state == DumpedTask::State::kWaiting) task.awaited_task = number_of(read.awaited);
    task.other_awaiters = read.has_more_awaiters ? 1 : 0;
    for (const Address awaiter : read.awaiters) {
      const std::optional<std::size_t> number = number_of(awaiter);
      if (number && ++edges_ <= kMostEdges)
        task.awaited_by.push_back(*number);
      else
        ++task.other_awaiters;
    }
    std::sort(task.awaited_by.begin(), task.awaited_by.end());
    return task;
  }

  void connect() {
    for (ReadTask& read : read_) out_.tasks.push_back(connected(read));
    for (const auto& [loop, task] : running_) {
      const std::optional<std::size_t> number = number_of(task);
      if (!number) continue;
      out_.loops[loop_number(loop)].running_task = number;
      DumpedTask::State& state = out_.tasks[*number].state;
      if (state == DumpedTask::State::kStepping) state = DumpedTask::State::kRunning;
    }
  }

  Target target_;
  const cpython::TaskLayout& tasks_;
  const memory::RemoteReader memory_;
  memory::PagedReader pages_;
  SharedCpu shared_cpu_;
  TaskDump out_;
  std::vector<ReadTask> read_;
  std::size_t edges_ = 0;
  boost::unordered_flat_map<std::uint64_t, std::size_t> numbers_;  // of tasks, by address
  boost::unordered_flat_map<std::uint64_t, std::size_t> loops_;
  std::vector<std::pair<Address, Address>> running_;  // loops and what they run
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
