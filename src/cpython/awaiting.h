// cpython/awaiting.h: the stack of a thread in an asyncio task's step, with the tasks that await it in place of the
// event loop: [task main] main -> [task fetch] fetch -> ...
//
// A task runs in the event loop's stack, which says nothing of why it runs. Those who await it are suspended, with
// frames that are on no stack. They are read in the same look as the stack; what could not be told leaves the stack as
// it was. It runs in a signal handler on its own thread: no allocation, no lock, fixed room.
//
// The first step of an eager task is called by who makes it, in the midst of the step of another task. Then the frames
// around it say why it runs, and stay: main -> parent -> create_task -> [task child] child -> ...
#pragma once

#include <algorithm>
#include <span>

#include "cpython/await_chain.h"
#include "cpython/code_object.h"

namespace plimsoll::cpython {

// No frame, but what stands beyond the outermost frame of a task: `code` is that of its coroutine, and `reserved` says
// how many bytes its name has, which are in the slots before the mark. Without a code object: several tasks.
inline constexpr std::int32_t kTaskMark = INT32_MIN + 2;

// The slots that the bytes of a name take.
constexpr std::size_t name_slots(std::size_t bytes) { return (bytes + sizeof(PyFrame) - 1) / sizeof(PyFrame); }

// Calls visit(const PyFrame&, std::string_view name) for all frames and marks from the outermost on, until it returns
// false; names are those of marks. False if it did, or a name is cut.
template <typename Visit>
bool each_from_outermost(std::span<const PyFrame> frames, Visit visit) {
  while (!frames.empty()) {
    const PyFrame& frame = frames.back();
    frames = frames.first(frames.size() - 1);
    std::string_view name;
    if (frame.position == kTaskMark) {
      const std::size_t slots = name_slots(frame.reserved);
      if (slots > frames.size()) return false;
      name = {reinterpret_cast<const char*>(frames.last(slots).data()), frame.reserved};
      frames = frames.first(frames.size() - slots);
    }
    if (!visit(frame, name)) return false;
  }
  return true;
}

// What has become of a stack.
struct AwaitingStack {
  // Whether it is that of a task.
  enum class Outcome : std::uint8_t {
    kNoStep,      // the thread runs no task, or is between two steps
    kFound,       // it is, and those who await the task follow
    kUnreadable,  // it should be, but not all could be read: nothing has changed
  } outcome = Outcome::kNoStep;
  std::uint32_t own = 0;    // slots with the thread's own frames: of a task, up to its coroutine
  std::uint32_t count = 0;  // with those that follow
  WalkStop stop = WalkStop::kComplete;
  std::uint32_t touched = 0;  // slots that have been written to
};

namespace internal {

// Writes those who await a task, innermost first, into slots.
template <memory::Reader M>
class AwaitingWriter {
 public:
  AwaitingWriter(const M& memory, const TaskPlaces& places, std::span<PyFrame> slots, std::size_t most_frames)
      : memory_(memory), places_(places), slots_(slots), frames_left_(most_frames) {}

  // The mark of a task that runs `code`, and all who await it: one after another, until one is awaited by nobody or by
  // several. False if something on the way cannot be read.
  bool add(Address task, const TaskHead& head, Address code) {
    TaskHead of = head;
    Address at = task;
    while (true) {
      if (!add_mark(at, of, code)) return false;
      if (is_full_) return true;
      Address awaiter{};
      const Found found = find_awaiter(at, awaiter);
      ends_with_nobody_ = found == Found::kNone;
      if (ends_with_nobody_) return true;
      if (found == Found::kUnreadable) return false;
      if (found == Found::kSeveral) {
        put({Address{}, kTaskMark, 0});
        return true;
      }
      seen_[seen_count_++] = at;
      if (seen_count_ == seen_.size() ||
          std::find(seen_.begin(), seen_.begin() + seen_count_, awaiter) != seen_.begin() + seen_count_) {
        is_full_ = true;
        return true;
      }
      at = awaiter;
      if (!read_head(memory_, places_.tasks, at, of) || !add_frames(of.coroutine, code)) return false;
      if (is_full_) return true;
    }
  }

  [[nodiscard]] std::size_t count() const { return count_; }
  // Slots that have been written to.
  [[nodiscard]] std::size_t touched() const { return touched_; }
  // There was no room for all, or they go round: the outermost are missing.
  [[nodiscard]] bool is_full() const { return is_full_; }
  // Nobody awaits the outermost.
  [[nodiscard]] bool ends_with_nobody() const { return ends_with_nobody_; }
  // Frames that there may be still.
  [[nodiscard]] std::size_t frames_left() const { return frames_left_; }

 private:
  // Those who await a task, directly or through Futures.
  enum class Found : std::uint8_t { kNone, kOne, kSeveral, kUnreadable };

  void put(const PyFrame& frame) {
    if (count_ == slots_.size() || frames_left_ == 0) {
      is_full_ = true;
      return;
    }
    slots_[count_++] = frame;
    touched_ = std::max(touched_, count_);
    --frames_left_;
  }

  // A task's name goes along as bytes: it may be gone when somebody asks for it. "Task-12" need not.
  bool add_mark(Address task, const TaskHead& head, Address code) {
    const AwaitKind kind = read_kind(memory_, places_, head.name);
    if (kind != AwaitKind::kText && kind != AwaitKind::kInteger) return false;
    constexpr std::size_t kMostSlots = name_slots(kMostTaskNameBytes) + 1;
    if (slots_.size() - count_ < kMostSlots) {
      is_full_ = true;
      return true;
    }
    std::size_t size = 0;
    const std::span<char> room(reinterpret_cast<char*>(slots_.data() + count_), kMostTaskNameBytes);
    const bool is_read = kind != AwaitKind::kText || read_text_start(memory_, places_.layout, head.name, room, size);
    touched_ = std::max(touched_, count_ + name_slots(size));
    // Another thread may have renamed it meanwhile, and its name was freed.
    Address name{};
    if (!is_read || !load_member(memory_, task, places_.tasks.task.name, name) || name != head.name) return false;
    const std::size_t before = count_;
    count_ += name_slots(size);
    put({code, kTaskMark, static_cast<std::uint32_t>(size)});
    if (is_full_) count_ = before;
    return true;
  }

  // The frames of a suspended coroutine, down to its await; `code` is the outermost's. (A chain is read from its outer
  // end.)
  bool add_frames(Address coroutine, Address& code) {
    const std::size_t first = count_;
    AwaitStep step;
    step.next = coroutine;
    for (std::size_t steps = 0; !is_null(step.next); ++steps) {
      step = step_along(memory_, places_, step.next, read_kind(memory_, places_, step.next));
      if (!step.has_frame) continue;
      if (count_ == slots_.size() || steps >= slots_.size()) {
        is_full_ = true;
        count_ = first;
        return true;
      }
      slots_[count_++] = step.frame;
      touched_ = std::max(touched_, count_);
    }
    if (count_ == first || step.end == AwaitEnd::kUnreadable || step.end == AwaitEnd::kExecuting) return false;
    code = slots_[first].code;
    std::reverse(slots_.begin() + static_cast<std::ptrdiff_t>(first),
                 slots_.begin() + static_cast<std::ptrdiff_t>(count_));
    is_full_ = count_ - first > frames_left_;
    count_ = std::min(count_, first + frames_left_);
    frames_left_ -= count_ - first;
    return true;
  }

  Found find_awaiter(Address task, Address& out) const {
    std::array<Address, kMostBetween> futures{task};
    std::size_t count = 1;
    std::uint64_t places_left = kMostPlaces;
    bool is_several = false;
    bool fits = true;
    const auto kind_of = [this](Address object) { return read_kind(memory_, places_, object); };
    const auto visit = [&](Address awaiter) {
      if (is_task(memory_, places_.tasks, awaiter)) {
        is_several = !is_null(out) && out != awaiter;
        out = awaiter;
        return !is_several;
      }
      const auto end = futures.begin() + static_cast<std::ptrdiff_t>(count);
      if (std::find(futures.begin(), end, awaiter) != end) return true;
      fits = count < kMostBetween;
      if (fits) futures[count++] = awaiter;
      return fits;
    };
    for (std::size_t next = 0; next < count; ++next) {
      const AwaiterScan scan = each_awaiter(memory_, places_, futures[next], kind_of, places_left, visit);
      if (is_several) return Found::kSeveral;
      if (scan != AwaiterScan::kAll) return Found::kUnreadable;
    }
    return is_null(out) ? Found::kNone : Found::kOne;
  }

  static constexpr std::size_t kMostAwaiting = 100;   // tasks that await one another in a row
  static constexpr std::size_t kMostBetween = 32;     // Futures through which one task awaits another
  static constexpr std::uint64_t kMostPlaces = 4096;  // of their sets

  const M& memory_;
  const TaskPlaces& places_;
  const std::span<PyFrame> slots_;
  std::size_t count_ = 0;
  std::size_t touched_ = 0;
  std::size_t frames_left_;
  bool is_full_ = false;
  bool ends_with_nobody_ = false;
  std::array<Address, kMostAwaiting> seen_{};
  std::size_t seen_count_ = 0;
};

// The place of a coroutine's frame in a stack that has just been walked, by its address; the stack's size if it is not
// there. It is there a moment longer than the coroutine says that it runs.
template <memory::Reader M>
std::size_t place_of_coroutine(const M& memory, const TaskPlaces& places, Address tstate, Address coroutine,
                               std::span<const PyFrame> stack) {
  Address innermost{};
  Address wanted{};
  if (read_kind(memory, places, coroutine) != AwaitKind::kGenerator ||
      !load_coroutine_frame(memory, places.tasks, coroutine, wanted) ||
      !current_frame(memory, places.layout, tstate, innermost))
    return stack.size();
  std::size_t place = 0;
  bool is_there = false;
  const auto visit = [&](Address frame, const FrameLook& look, const PyFrame& found) {
    if (look.stop != WalkStop::kComplete && frame != innermost) return false;
    while (place < stack.size() && stack[place].position == kEntryMark) ++place;
    if (place == stack.size()) return false;
    is_there = frame == wanted && look.found && stack[place].code == found.code;
    if (look.found && !is_there) ++place;
    return frame != wanted;
  };
  // Between two frames there is one entry from C at most.
  each_frame(memory, places.layout, places.code_type, innermost, 2 * stack.size() + 2, visit);
  return is_there ? place : stack.size();
}

// Whether a coroutine that runs was entered while another one, of the same type, does, too. (Before 3.11 a frame does
// not say whose it is; eager tasks came later.)
template <memory::Reader M>
bool is_within_another(const M& memory, const TaskPlaces& places, Address coroutine, std::size_t most) {
  const Layout& layout = places.layout;
  const std::uint32_t offset = places.tasks.coroutine.frame;
  Address own{};
  Address type{};
  if (places.tasks.coroutine.frame_is_elsewhere || layout.frame.owner == kNoField ||
      !load_coroutine_frame(memory, places.tasks, coroutine, own) || !load_type(memory, layout, coroutine, type))
    return false;
  bool is_within = false;
  each_frame(memory, layout, places.code_type, own, most, [&](Address frame, const FrameLook& look, const PyFrame&) {
    constexpr std::uint8_t kGenerator = 1;
    std::uint8_t owner = 0;
    Address other{};
    is_within = frame != own && look.found && memory.load(offset_by(frame, layout.frame.owner), owner) &&
                owner == kGenerator && load_type(memory, layout, Address{raw(frame) - offset}, other) && other == type;
    return !is_within && look.stop == WalkStop::kComplete;
  });
  return is_within;
}

// `slots` begin with `own` slots of a thread's frames, those around them up to `end`, and `count` of tasks. Puts those
// around behind the tasks, without marks of entries. How many they are.
inline std::size_t put_callers_behind(std::span<PyFrame> slots, std::size_t own, std::size_t end, std::size_t count) {
  const auto at = [&](std::size_t place) { return slots.begin() + static_cast<std::ptrdiff_t>(place); };
  std::rotate(at(own), at(end), at(end + count));
  const auto last = std::remove_if(at(own + count), at(end + count),
                                   [](const PyFrame& frame) { return frame.position == kEntryMark; });
  return static_cast<std::size_t>(last - at(own + count));
}

template <memory::Reader M>
bool is_executing(const M& memory, const TaskPlaces& places, Address coroutine) {
  return step_along(memory, places, coroutine, read_kind(memory, places, coroutine)).end == AwaitEnd::kExecuting;
}

}  // namespace internal

// The task whose step a thread is in; null if it is in none. False if that cannot be told.
template <memory::Reader M>
bool load_running_task(const M& memory, const Layout& layout, const TaskLayout& tasks, Address tstate, Address& task) {
  return tasks.callbacks ? load_current_task(memory, layout, *tasks.callbacks, tstate, task)
                         : internal::load_member(memory, tstate, tasks.tstate.running_task, task);
}

// `slots` begin with the stack that was walked, with or without marks of entries from C. If the thread is in a task's
// step, all beyond the frame of its coroutine gives way to those who await the task: at most so many frames and marks
// that there are `max_depth` together. If nobody awaits them and a coroutine called the step, what was beyond follows.
// Else nothing changes.
template <memory::Reader M>
AwaitingStack put_awaiting(const M& memory, const TaskPlaces& places, Address tstate, std::span<PyFrame> slots,
                           const Walk& walk, std::size_t max_depth) {
  using Outcome = AwaitingStack::Outcome;
  AwaitingStack out{Outcome::kNoStep, walk.count, walk.count, walk.stop, walk.count};
  Address running{};
  if (!load_running_task(memory, places.layout, places.tasks, tstate, running)) {
    out.outcome = Outcome::kUnreadable;
    return out;
  }
  if (is_null(running)) return out;
  const std::span<const PyFrame> stack = slots.first(walk.count);
  TaskHead head;
  const bool is_read = read_head(memory, places.tasks, running, head);
  const std::size_t place =
      is_read ? internal::place_of_coroutine(memory, places, tstate, head.coroutine, stack) : stack.size();
  if (place == stack.size()) {
    // Between the event loop and its coroutine's first line it is as any other. (Or it is out of those that are kept.)
    const bool should_be = !is_read || internal::is_executing(memory, places, head.coroutine);
    if (should_be && walk.stop != WalkStop::kTruncated) out.outcome = Outcome::kUnreadable;
    return out;
  }
  std::size_t own = place + 1;
  const std::size_t most = max_depth - std::min(max_depth, own);
  if (own < stack.size() && stack[own].position == kEntryMark) ++own;
  internal::AwaitingWriter<M> writer(memory, places, slots.subspan(walk.count), most);
  const bool are_read = writer.add(running, head, stack[place].code);
  out.touched = static_cast<std::uint32_t>(walk.count + writer.touched());
  if (!are_read) {
    out.outcome = Outcome::kUnreadable;
    return out;
  }
  // Only now, as they may have turned out to be none.
  const std::size_t callers = internal::put_callers_behind(slots, own, stack.size(), writer.count());
  const bool have_called = writer.ends_with_nobody() && !writer.is_full() &&
                           internal::is_within_another(memory, places, head.coroutine, 2 * stack.size() + 2);
  const std::size_t kept = have_called ? std::min(callers, writer.frames_left()) : 0;
  const bool is_cut = have_called ? kept < callers || walk.stop == WalkStop::kTruncated : writer.is_full();
  out.outcome = Outcome::kFound;
  out.own = static_cast<std::uint32_t>(own);
  out.count = static_cast<std::uint32_t>(own + writer.count() + kept);
  out.stop = is_cut ? WalkStop::kTruncated : WalkStop::kComplete;
  return out;
}

}  // namespace plimsoll::cpython
