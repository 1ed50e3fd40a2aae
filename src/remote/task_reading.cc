#include "remote/task_reading.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <string_view>
#include <tuple>

#include "cpython/awaiting.h"
#include "remote/code_copies.h"

namespace plimsoll::remote {
namespace {

using cpython::AwaitEnd;
using cpython::PyFrame;

// Of a chain of coroutines, and of a thread's stack.
constexpr std::size_t kMostDepth = 10'000;
// Of all tasks together: each is a few words, however long its names are.
constexpr std::size_t kMostFrames = 2'000'000;

// A frame of a thread's stack.
struct StackFrame {
  Address at{};
  PyFrame frame;
};

// By which names are put in order: what stands before the number at the end, how many digits that has, and it.
std::tuple<std::string_view, std::size_t, std::string_view> name_order(std::string_view name) {
  const std::size_t letters = name.find_last_not_of("0123456789") + 1;
  return {name.substr(0, letters), name.size() - letters, name.substr(letters)};
}

// The event loop that a thread runs; null if it runs none. False if that cannot be read.
template <memory::Reader M>
bool load_running_loop(const M& memory, const cpython::TaskPlaces& places, Address thread, Address& loop) {
  if (!places.tasks.callbacks)
    return memory::load_address(memory, offset_by(thread, places.tasks.tstate.running_loop), loop);
  const cpython::FutureCallbacks& known = *places.tasks.callbacks;
  const cpython::ObjectView<M> view(memory, places.layout, known.fields, cpython::internal::kCallbackWords);
  return cpython::internal::load_running_loop(view, known, thread, loop);
}

// One reading, as it goes on.
template <memory::Reader M>
class Reading {
 public:
  Reading(const M& memory, const cpython::TaskPlaces& places)
      : memory_(memory), places_(places), reader_(memory, places, kMostDepth) {}

  TaskReading run(const TaskShare& share, std::span<const Address> loops) {
    const Address thread = share.thread.address;
    out_.is_whole = load_running_loop(memory_, places_, thread, out_.running_loop) &&
                    cpython::load_running_task(memory_, places_.layout, places_.tasks, thread, out_.running_task);
    std::vector<Address> found = places_.tasks.callbacks ? of_loops(share, loops) : of_lists(share);
    // One that was begun at once is in no list before it first waits.
    if (!is_null(out_.running_task) && std::find(found.begin(), found.end(), out_.running_task) == found.end())
      found.push_back(out_.running_task);
    for (const Address task : found) read_task(task);
    add_stacks(thread);
    // A set has no order of its own. Asyncio numbers tasks that have no other name as they are made.
    if (places_.tasks.callbacks)
      std::sort(out_.tasks.begin(), out_.tasks.end(),
                [](const ReadTask& a, const ReadTask& b) { return name_order(a.name) < name_order(b.name); });
    return std::move(out_);
  }

 private:
  std::vector<Address> of_lists(const TaskShare& share) {
    std::vector<Address> found;
    const Address head = offset_by(share.thread.address, places_.tasks.tstate.tasks);
    out_.is_whole = reader_.list(head, found) && out_.is_whole;
    if (!is_null(share.interpreter))
      out_.is_whole =
          reader_.list(offset_by(share.interpreter, places_.tasks.interpreter.tasks), found) && out_.is_whole;
    return found;
  }

  std::vector<Address> of_loops(const TaskShare& share, std::span<const Address> loops) {
    std::vector<Address> found;
    out_.is_whole = reader_.all(found) && out_.is_whole;
    std::erase_if(found, [&](Address task) {
      Address loop{};
      if (!memory::load_address(memory_, offset_by(task, places_.tasks.task.loop), loop)) return true;
      if (loop == out_.running_loop) return false;
      return is_null(share.interpreter) || std::binary_search(loops.begin(), loops.end(), loop);
    });
    return found;
  }

  void read_task(Address task) {
    cpython::TaskRecord record;
    if (!reader_.read(task, record)) {
      ++out_.unreadable;
      return;
    }
    // (Where asyncio has a list, such a task is not in it any more. A set has it as long as somebody keeps it.)
    if (places_.tasks.callbacks && record.chain.end == AwaitEnd::kEnded) return;
    ReadTask read{record.task,
                  record.loop,
                  std::move(record.name),
                  {},
                  record.has_more_awaiters,
                  {},
                  record.chain.end,
                  record.chain.awaited,
                  std::move(record.chain.awaited_type)};
    read.awaiters = reader_.tasks_among(std::move(record.awaiters), read.has_more_awaiters);
    for (auto frame = record.chain.frames.rbegin(); frame != record.chain.frames.rend(); ++frame)
      add_frame(*frame, read);
    if (read.end == AwaitEnd::kExecuting) executing_.push_back({record.chain.executing, out_.tasks.size()});
    out_.tasks.push_back(std::move(read));
  }

  void add_frame(const PyFrame& frame, ReadTask& read) {
    const auto& code = codes_.find(memory_, places_.layout, frame.code);
    if (code == nullptr) {
      read.end = AwaitEnd::kUnreadable;
      return;
    }
    if (code->is_init_cleanup()) return;
    if (++frames_ > kMostFrames) {
      read.end = AwaitEnd::kTooDeep;
      return;
    }
    read.frames.push_back({code, cpython::locate_near(places_.layout.line_table_style, code->line_table,
                                                      code->first_line, frame.position)});
  }

  [[nodiscard]] std::vector<StackFrame> stack_of(Address thread) const {
    std::vector<StackFrame> stack;
    Address frame{};
    if (!cpython::current_frame(memory_, places_.layout, thread, frame)) return stack;
    cpython::internal::each_frame(memory_, places_.layout, places_.code_type, frame, kMostDepth,
                                  [&](Address at, const auto& look, const PyFrame& found) {
                                    // (The innermost may be on its way in or out.)
                                    const bool is_innermost = at == frame;
                                    if (look.stop != cpython::WalkStop::kComplete && !is_innermost) return false;
                                    if (look.found) stack.push_back({at, found});
                                    return true;
                                  });
    return stack;
  }

  // The coroutine of a task that runs is somewhere on the thread's stack, and what it has called is further in: up to
  // the innermost frame, or to another task's coroutine, which it began.
  void add_stacks(Address thread) {
    if (executing_.empty()) return;
    const std::vector<StackFrame> stack = stack_of(thread);
    boost::unordered_flat_map<std::uint64_t, std::size_t> tasks;
    for (const Executing& one : executing_) tasks.emplace(raw(one.frame), one.task);
    std::vector<PyFrame> frames;
    for (const StackFrame& frame : stack) {
      frames.push_back(frame.frame);
      const auto task = tasks.find(raw(frame.at));
      if (task == tasks.end()) continue;
      for (const PyFrame& each : frames) add_frame(each, out_.tasks[task->second]);
      frames.clear();
      tasks.erase(task);
    }
    for (const auto& [frame, task] : tasks) out_.tasks[task].end = AwaitEnd::kUnreadable;
  }

  // The outermost frame of a task that runs, and its place in out_.tasks.
  struct Executing {
    Address frame{};
    std::size_t task = 0;
  };

  const M& memory_;
  const cpython::TaskPlaces& places_;
  cpython::TaskReader<M> reader_;
  CodeCopies codes_;
  std::vector<Executing> executing_;
  std::size_t frames_ = 0;
  TaskReading out_;
};

}  // namespace

std::vector<TaskShare> share_out(const std::vector<ThreadState>& threads) {
  std::vector<TaskShare> shares;
  boost::unordered_flat_set<std::uint64_t> interpreters;
  for (const ThreadState& thread : threads) {
    const bool is_first = interpreters.insert(raw(thread.interpreter)).second;
    shares.push_back({thread, is_first ? thread.interpreter : Address{}});
  }
  return shares;
}

template <memory::Reader M>
std::vector<Address> running_loops(const M& memory, const cpython::TaskPlaces& places,
                                   const std::vector<ThreadState>& threads) {
  std::vector<Address> loops;
  if (!places.tasks.callbacks) return loops;
  for (const ThreadState& thread : threads)
    if (Address loop{}; load_running_loop(memory, places, thread.address, loop) && !is_null(loop))
      loops.push_back(loop);
  std::sort(loops.begin(), loops.end());
  return loops;
}
template std::vector<Address> running_loops(const memory::PagedReader&, const cpython::TaskPlaces&,
                                            const std::vector<ThreadState>&);
template std::vector<Address> running_loops(const memory::Image&, const cpython::TaskPlaces&,
                                            const std::vector<ThreadState>&);

template <memory::Reader M>
TaskReading read_tasks(const M& memory, const cpython::TaskPlaces& places, const TaskShare& share,
                       std::span<const Address> loops) {
  return Reading<M>(memory, places).run(share, loops);
}
template TaskReading read_tasks(const memory::PagedReader&, const cpython::TaskPlaces&, const TaskShare&,
                                std::span<const Address>);
template TaskReading read_tasks(const memory::Image&, const cpython::TaskPlaces&, const TaskShare&,
                                std::span<const Address>);

}  // namespace plimsoll::remote
