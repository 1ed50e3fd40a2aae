// capture/tasks_testing.h: asyncio's tasks in this process's own memory, for tests only. No product code may include
// it.
//
// Beside the made-up interpreter of capture/testing.h: structures of our own, laid out by offsetof.
#pragma once

#include <cstring>
#include <string_view>
#include <vector>

#include "capture/awaiting_tasks.h"
#include "capture/testing.h"

namespace plimsoll::capture::testing {

// A type: its name says what its objects are.
struct FakeType {
  const char* name;
  std::uint64_t flags;
};
inline constexpr FakeType kFakeCoroutineType{"coroutine", 0};
inline constexpr FakeType kFakeIteratorType{"_asyncio.FutureIter", cpython::type_flag::kHeapType};
inline constexpr FakeType kFakeTaskType{"_asyncio.Task", cpython::type_flag::kHeapType};
inline constexpr FakeType kFakeTextType{"str", cpython::type_flag::kText};

// What iterates over a Future.
struct FakeIterator {
  const void* type = &kFakeIteratorType;
  const void* future = &kFakeIteratorType;
};
// A coroutine, its frame, and that frame's stack.
struct FakeCoroutine {
  const void* type = &kFakeCoroutineType;
  FakeFrame frame{};
  const void* const* stack_top = nullptr;
  const void* stack[1] = {nullptr};
  std::int8_t state = 0;
};
// A task, and what it is made of. It cannot be moved.
struct FakeTask {
  FakeTask(std::string_view called, const FakeFunction& function)
      : own_name{&kFakeTextType, called.size(), kPlain, {}} {
    std::memcpy(own_name.characters, called.data(), called.size());
    own_coroutine.frame = function.frame(16);
  }
  FakeTask(const FakeTask&) = delete;
  FakeTask& operator=(const FakeTask&) = delete;

  // It is suspended in its await.
  void wait() {
    own_coroutine.stack[0] = &iterator;
    own_coroutine.stack_top = own_coroutine.stack + 1;
    own_coroutine.state = kAwaiting;
  }
  // It runs, called by a frame.
  void run(const FakeFrame* caller) {
    own_coroutine.frame.previous = caller;
    own_coroutine.state = kExecuting;
  }

  static constexpr std::uint32_t kPlain = 1U | 8U | 16U;  // as FakeFunction has it
  static constexpr std::int8_t kCreated = 0, kAwaiting = 1, kExecuting = 2, kEnded = 3;

  const void* type = &kFakeTaskType;
  const void* loop = nullptr;
  const void* name = &own_name;
  const void* awaited_by = nullptr;
  const void* coroutine = &own_coroutine;
  std::uint8_t is_task = 1, awaited_by_is_set = 0;
  FakeText own_name;
  FakeIterator iterator;
  FakeCoroutine own_coroutine;
};
// A thread state that knows the running task.
struct FakeTaskThreadState : FakeThreadState {
  const FakeTask* running_task = nullptr;
};

// A thread that is some calls deep: half of them the event loop's, and then the step of a task, "fetch 12", which
// "batch" awaits, and that "main".
class TaskThread {
 public:
  explicit TaskThread(std::size_t depth) : frames_(depth) {
    const FakeFrame* caller = nullptr;
    for (std::size_t i = 0; i < depth; ++i) {
      const bool is_step = i == depth / 2;
      if (is_step) running.run(caller);
      frames_[i] = (i < depth / 2 ? loop : work).frame(0, caller);
      caller = is_step ? &running.own_coroutine.frame : &frames_[i];
    }
    running.awaited_by = &middle;
    middle.awaited_by = &outer;
    middle.wait();
    outer.wait();
    state_.running_task = &running;
    state_.current_frame.store(caller);
  }
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;
  [[nodiscard]] Address state() const { return address_of(&state_); }

  FakeFunction loop{"loop"}, work{"work"}, fetch{"fetch"}, batch{"batches"}, main{"main"};
  FakeTask running{"fetch 12", fetch}, middle{"batch", batch}, outer{"main", main};

 private:
  std::vector<FakeFrame> frames_;
  FakeTaskThreadState state_;
};

inline cpython::TaskLayout fake_task_layout() {
  cpython::TaskLayout layout;
  layout.type = {.name = offsetof(FakeType, name), .flags = offsetof(FakeType, flags)};
  layout.coroutine = {.frame = offsetof(FakeCoroutine, frame),
                      .frame_state = offsetof(FakeCoroutine, state),
                      .stack_top = offsetof(FakeCoroutine, stack_top) - offsetof(FakeCoroutine, frame),
                      .awaited = sizeof(const void*),
                      .created = FakeTask::kCreated,
                      .executing = FakeTask::kExecuting,
                      .first_awaiting = FakeTask::kAwaiting,
                      .last_awaiting = FakeTask::kAwaiting,
                      .first_ended = FakeTask::kEnded};
  layout.task = {.loop = offsetof(FakeTask, loop),
                 .name = offsetof(FakeTask, name),
                 .awaited_by = offsetof(FakeTask, awaited_by),
                 .awaited_by_is_set = offsetof(FakeTask, awaited_by_is_set),
                 .is_task = offsetof(FakeTask, is_task),
                 .coroutine = offsetof(FakeTask, coroutine),
                 .node = 0};
  layout.tstate.running_task = sizeof(FakeThreadState);
  return layout;
}

}  // namespace plimsoll::capture::testing
