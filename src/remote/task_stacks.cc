#include "remote/task_stacks.h"

#include <algorithm>

namespace plimsoll::remote {
namespace {

using cpython::PyFrame;
using cpython::TaskRecord;
using cpython::WalkStop;

// Tasks that await one another in a row; more have their outermost left out.
constexpr std::size_t kMostAwaiting = 200;
// More different names than this are one.
constexpr std::size_t kMostNames = 50'000;

// "Task-12", which nobody has chosen: the coroutine says more.
bool is_given_by_asyncio(std::string_view name) {
  constexpr std::string_view kStart = "Task-";
  return name.starts_with(kStart) && name.size() > kStart.size() &&
         name.find_first_not_of("0123456789", kStart.size()) == std::string_view::npos;
}

}  // namespace

// Has room for so many frames. When it is full, the outermost are left out.
struct TaskStacks::Stack {
  std::vector<PyFrame>& frames;
  std::size_t count = 0;
  bool is_full = false;

  void add(const PyFrame& frame) {
    if (count == frames.size())
      is_full = true;
    else
      frames[count++] = frame;
  }
};

PyFrame TaskStacks::frame_called(const std::string& name) {
  const std::string& known = names_.size() < kMostNames || names_.contains(name) ? name : std::string("[task]");
  const auto [place, is_new] = names_.try_emplace(known, kTaskFrames + 16 * names_.size());
  const Address code{place->second};
  if (is_new) {
    cpython::CodeInfo info;
    info.name = known;
    new_frames_.emplace_back(code, std::make_shared<const cpython::CodeInfo>(std::move(info)));
  }
  return {code, 0, 0};
}

// The place of a frame in a stack, by its address; `count` if it is not there.
std::size_t TaskStacks::find_frame(const memory::PagedReader& pages, Address thread_state, Address wanted,
                                   const std::vector<PyFrame>& frames, std::size_t count) const {
  Address at{};
  if (!cpython::current_frame(pages, layout_, thread_state, at)) return count;
  const Address innermost = at;
  std::size_t place = 0;
  bool is_there = false;
  const auto visit = [&](Address frame, const auto& look, const PyFrame& found) {
    if (place == count || (look.stop != WalkStop::kComplete && frame != innermost)) return false;
    is_there = frame == wanted && look.found && frames[place].code == found.code;
    if (look.found && !is_there) ++place;
    return frame != wanted;
  };
  cpython::internal::each_frame(pages, layout_, code_type_, innermost, SIZE_MAX, visit);
  return is_there ? place : count;
}

bool TaskStacks::add_label(const memory::PagedReader& pages, const TaskRecord& task, Address code, Stack& stack) {
  std::string name = task.name;
  if (is_given_by_asyncio(name)) {
    Address text{};
    if (!memory::load_address(pages, offset_by(code, layout_.code.qualname), text) ||
        !cpython::read_text(pages, layout_, text, name))
      return false;
  }
  stack.add(frame_called("[task " + name + "]"));
  return true;
}

// Those that await a task, one after another, until one is awaited by nobody or by several.
bool TaskStacks::add_awaiting(const memory::PagedReader& pages, Reader& reader, TaskRecord task, Stack& stack) {
  std::vector<Address> seen{task.task};
  while (true) {
    bool has_more = task.has_more_awaiters;
    const std::vector<Address> awaiting = reader.tasks_among(std::move(task.awaiters), has_more);
    if (awaiting.empty()) return true;
    if (awaiting.size() > 1 || has_more) {
      stack.add(frame_called("[several tasks]"));
      return true;
    }
    if (stack.is_full || seen.size() == kMostAwaiting ||
        std::find(seen.begin(), seen.end(), awaiting[0]) != seen.end()) {
      stack.is_full = true;
      return true;
    }
    seen.push_back(awaiting[0]);
    if (!reader.read(awaiting[0], task) || task.chain.frames.empty() ||
        task.chain.end == cpython::AwaitEnd::kUnreadable || task.chain.end == cpython::AwaitEnd::kExecuting)
      return false;
    for (auto frame = task.chain.frames.rbegin(); frame != task.chain.frames.rend(); ++frame) stack.add(*frame);
    if (!add_label(pages, task, task.chain.frames.front().code, stack)) return false;
  }
}

std::size_t TaskStacks::put_awaiting(const memory::PagedReader& pages, Address thread_state,
                                     std::vector<PyFrame>& frames, std::size_t count, WalkStop& stop) {
  last_ = {};
  Address running{};
  if (!memory::load_address(pages, offset_by(thread_state, tasks_.tstate.running_task), running) || is_null(running))
    return count;
  Reader reader(pages, layout_, tasks_, code_type_, frames.size());
  TaskRecord task;
  const bool is_read = reader.read(running, task);
  // Between the event loop and its coroutine's first or next line it is as any other.
  if (is_read && task.chain.end != cpython::AwaitEnd::kExecuting) return count;
  const std::size_t outermost = is_read ? find_frame(pages, thread_state, task.chain.executing, frames, count) : count;
  if (outermost == count) {
    // (It may be out of those that are kept.)
    if (stop != WalkStop::kTruncated) last_.unreadable = 1;
    return count;
  }
  const std::vector<PyFrame> before(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(count));
  Stack stack{frames, outermost + 1};
  if (!add_label(pages, task, frames[outermost].code, stack) || !add_awaiting(pages, reader, std::move(task), stack)) {
    std::copy(before.begin(), before.end(), frames.begin());
    last_.unreadable = 1;
    return count;
  }
  last_.found = 1;
  stop = stack.is_full ? WalkStop::kTruncated : WalkStop::kComplete;
  return stack.count;
}

}  // namespace plimsoll::remote
