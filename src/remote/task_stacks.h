// remote/task_stacks.h: the stack of a thread that runs an asyncio task, with the tasks that await it in place of the
// event loop: [task main] main -> [task fetch] fetch -> ...
//
// A task runs in the event loop's stack, which says nothing of why it runs. Who awaits it is suspended, with frames of
// its own that are on no stack. What is read here must be read while the thread stands still, and is proven with the
// stack itself (stack_reader.h).
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cpython/tasks.h"
#include "memory/remote.h"

namespace plimsoll::remote {

// A frame's code address that stands for a task. No code object is there: it is no address of a program.
inline constexpr std::uint64_t kTaskFrames = 0xffff'0000'0000'0000U;
constexpr bool is_task_frame(Address code) { return raw(code) >= kTaskFrames; }

// Used by one thread.
class TaskStacks {
 public:
  // How it went with proven looks at threads in a task's step.
  struct Counts {
    std::uint64_t found = 0;
    std::uint64_t unreadable = 0;  // the stack is as it was
  };

  // `layout` must outlive it.
  TaskStacks(const cpython::Layout& layout, const cpython::TaskLayout& tasks, Address code_type)
      : layout_(layout), tasks_(tasks), code_type_(code_type) {}

  // `frames` begin with the `count` frames of a thread's stack, innermost first. If the thread is in a task's step,
  // those from the event loop outwards give way to the tasks that await it; how many there are then, and in `stop`
  // whether all fitted. Else nothing changes.
  std::size_t put_awaiting(const memory::PagedReader& pages, Address thread_state,
                           std::vector<cpython::PyFrame>& frames, std::size_t count, cpython::WalkStop& stop);
  // The frames that stand for tasks and have not been told of, with what they are called; the list is empty then.
  std::vector<std::pair<Address, std::shared_ptr<const cpython::CodeInfo>>> take_new_frames() {
    return std::exchange(new_frames_, {});
  }
  // The stack that was read last is proven: it counts.
  void note_proven() {
    counts_.found += last_.found;
    counts_.unreadable += last_.unreadable;
    last_ = {};
  }
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  using Reader = cpython::TaskReader<memory::PagedReader>;
  // The frames of a task and of those that await it, as they are put together.
  struct Stack;

  std::size_t find_frame(const memory::PagedReader& pages, Address thread_state, Address wanted,
                         const std::vector<cpython::PyFrame>& frames, std::size_t count) const;
  bool add_awaiting(const memory::PagedReader& pages, Reader& reader, cpython::TaskRecord task, Stack& stack);
  bool add_label(const memory::PagedReader& pages, const cpython::TaskRecord& task, Address code, Stack& stack);
  cpython::PyFrame frame_called(const std::string& name);

  const cpython::Layout& layout_;
  const cpython::TaskLayout tasks_;
  const Address code_type_;
  boost::unordered_flat_map<std::string, std::uint64_t> names_;
  std::vector<std::pair<Address, std::shared_ptr<const cpython::CodeInfo>>> new_frames_;
  Counts last_, counts_;
};

}  // namespace plimsoll::remote
