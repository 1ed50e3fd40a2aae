#include "remote/task_picture.h"

#include <algorithm>

namespace plimsoll::remote {
namespace {

// Who awaits whom, of all tasks together.
constexpr std::size_t kMostEdges = 1'000'000;

DumpedTask::State state_of(cpython::AwaitEnd end) {
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

}  // namespace

std::size_t TaskPicture::loop_number(Address loop) {
  const auto [place, is_new] = loops_.try_emplace(raw(loop), out_.loops.size());
  if (is_new) out_.loops.emplace_back();
  return place->second;
}

void TaskPicture::take(TaskReading reading, const os::Task& thread) {
  out_.unreadable += reading.unreadable;
  out_.is_cut = out_.is_cut || !reading.is_whole;
  if (!is_null(reading.running_loop)) out_.loops[loop_number(reading.running_loop)].thread = thread;
  if (!is_null(reading.running_task)) running_.emplace_back(reading.running_loop, reading.running_task);
  for (ReadTask& task : reading.tasks) {
    if (read_.size() == cpython::kMostTasks)
      out_.is_cut = true;
    else if (numbers_.try_emplace(raw(task.task), read_.size()).second)
      read_.push_back(std::move(task));
  }
}

std::optional<std::size_t> TaskPicture::number_of(Address task) const {
  const auto found = numbers_.find(raw(task));
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

DumpedTask TaskPicture::connected(ReadTask& read) {
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

TaskDump TaskPicture::finish() {
  for (ReadTask& read : read_) out_.tasks.push_back(connected(read));
  for (const auto& [loop, task] : running_) {
    const std::optional<std::size_t> number = number_of(task);
    if (!number) continue;
    out_.loops[loop_number(loop)].running_task = number;
    DumpedTask::State& state = out_.tasks[*number].state;
    if (state == DumpedTask::State::kStepping) state = DumpedTask::State::kRunning;
  }
  return std::move(out_);
}

}  // namespace plimsoll::remote
