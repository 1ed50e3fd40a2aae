// cpython/await_chain.h: the rules by which asyncio's structures say who awaits a task, and what its coroutine awaits.
//
// One step at a time and without allocation: for those who read all tasks of another process (tasks.h), and for a
// signal handler that follows one way outwards (awaiting.h). Nothing that is read is trusted: what proves to be no
// coroutine ends a chain, and a set that is being changed is none. Async-signal-safe if `memory` is.
#pragma once

#include <array>
#include <string_view>

#include "cpython/coroutine_state.h"
#include "cpython/future_callbacks.h"
#include "cpython/walk.h"

namespace plimsoll::cpython {

// What it takes to read tasks; it is the caller's.
struct TaskPlaces {
  const Layout& layout;
  const TaskLayout& tasks;
  Address code_type{};
};

// Of a task's name, in UTF-8; the rest is left out.
inline constexpr std::size_t kMostTaskNameBytes = 400;

// What a chain of coroutines ends in.
enum class AwaitEnd : std::uint8_t {
  kNothing,     // it lets others go first (asyncio.sleep(0)), or waits for a Future that is written in Python
  kNotBegun,    // the innermost coroutine has not run its first line
  kEnded,       // it has returned
  kFuture,      // `awaited` is a Future, or a Task
  kOther,       // `awaited` is another object
  kExecuting,   // it runs: its frames are on the stack of a thread, the outermost of them is `executing`
  kTooDeep,     // the innermost coroutines are missing
  kUnreadable,  // the same, as what should be one is none
};

// What an object is to a chain.
enum class AwaitKind : std::uint8_t {
  kOther,
  kGenerator,
  kWrapper,
  kFutureIterator,
  kText,
  kInteger,
  kSet,
  kUnreadable,
};

// By what its type is called. A program can call its classes what it wants, but they are made at run time, and the
// interpreter's own are not.
constexpr AwaitKind await_kind(std::string_view type_name, std::uint64_t flags) {
  if ((flags & type_flag::kText) != 0) return AwaitKind::kText;
  if ((flags & type_flag::kInt) != 0) return AwaitKind::kInteger;
  if (type_name == "_asyncio.FutureIter") return AwaitKind::kFutureIterator;
  if ((flags & type_flag::kHeapType) != 0) return AwaitKind::kOther;
  if (type_name == "coroutine" || type_name == "generator" || type_name == "async_generator")
    return AwaitKind::kGenerator;
  if (type_name == "coroutine_wrapper" || type_name == "async_generator_asend" ||
      type_name == "async_generator_athrow" || type_name == "anext_awaitable")
    return AwaitKind::kWrapper;
  return type_name == "set" ? AwaitKind::kSet : AwaitKind::kOther;
}

namespace internal {

// Loads a pointer among the members of an object.
template <memory::Reader M>
bool load_member(const M& memory, Address object, std::uint32_t offset, Address& out) {
  return memory::load_address(memory, offset_by(object, offset), out);
}

}  // namespace internal

// The type of an object. False if it cannot be read.
template <memory::Reader M>
bool load_type(const M& memory, const Layout& layout, Address object, Address& out) {
  return !is_null(object) && (raw(object) & 7U) == 0 && internal::load_member(memory, object, layout.object.type, out);
}

// What an object is, by a look at its type.
template <memory::Reader M>
AwaitKind read_kind(const M& memory, const TaskPlaces& places, Address object) {
  Address type{};
  Address name{};
  std::uint64_t flags = 0;
  if (!load_type(memory, places.layout, object, type) ||
      !internal::load_member(memory, type, places.tasks.type.name, name) ||
      !memory.load(offset_by(type, places.tasks.type.flags), flags))
    return AwaitKind::kUnreadable;
  // One byte more than the longest that means anything.
  std::array<char, 24> letters{};
  std::size_t size = 0;
  for (std::uint8_t byte = 1; size < letters.size(); letters[size++] = static_cast<char>(byte))
    if (!memory.load(offset_by(name, size), byte))
      return AwaitKind::kUnreadable;
    else if (byte == 0)
      break;
  return await_kind({letters.data(), size}, flags);
}

// One step along a chain of coroutines.
struct AwaitStep {
  Address next{};  // what to look at then; null: the chain ends here, in `end`
  AwaitEnd end = AwaitEnd::kNothing;
  bool has_frame = false;  // it is a coroutine that does not run, and `frame` is its own
  PyFrame frame;
  Address executing{}, awaited{};
};

namespace internal {

template <memory::Reader M>
AwaitStep step_into_coroutine(const M& memory, const TaskPlaces& places, Address coroutine) {
  using State = CoroutineState;
  AwaitStep step;
  const auto ends = [&](AwaitEnd end) {
    step.end = end;
    return step;
  };
  Address frame{};
  if (!load_coroutine_frame(memory, places.tasks, coroutine, frame)) return ends(AwaitEnd::kUnreadable);
  const State state = coroutine_state(memory, places.layout, places.tasks, coroutine, frame);
  // (Its frame is still there, but is none any more.)
  if (state == State::kEnded) return ends(AwaitEnd::kEnded);
  if (state == State::kUnreadable || !look_at_frame(memory, places.layout, places.code_type, frame, step.frame).found)
    return ends(AwaitEnd::kUnreadable);
  if (state == State::kExecuting) {
    step.executing = frame;
    return ends(AwaitEnd::kExecuting);
  }
  step.has_frame = true;
  if (state != State::kAwaiting) return ends(state == State::kCreated ? AwaitEnd::kNotBegun : AwaitEnd::kNothing);
  if (!load_awaited(memory, places.layout, places.tasks, frame, step.next)) return ends(AwaitEnd::kUnreadable);
  return step;
}

}  // namespace internal

// What an object of this kind passes an await on to.
template <memory::Reader M>
AwaitStep step_along(const M& memory, const TaskPlaces& places, Address object, AwaitKind kind) {
  if (kind == AwaitKind::kGenerator) return internal::step_into_coroutine(memory, places, object);
  AwaitStep step;
  if (kind == AwaitKind::kUnreadable) {
    step.end = AwaitEnd::kUnreadable;
  } else if (kind == AwaitKind::kWrapper || kind == AwaitKind::kFutureIterator) {
    // What it is for is its first member. (An iterator that is done has let go of its Future.)
    Address inner{};
    if (!internal::load_member(memory, object, places.layout.object.type + 8, inner)) {
      step.end = AwaitEnd::kUnreadable;
    } else if (kind == AwaitKind::kWrapper) {
      step.next = inner;
    } else if (!is_null(inner)) {
      step.awaited = inner;
      step.end = AwaitEnd::kFuture;
    }
  } else {
    step.awaited = object;
    step.end = AwaitEnd::kOther;
  }
  return step;
}

// Whether a Future is a Task. False also if it cannot be read.
template <memory::Reader M>
bool is_task(const M& memory, const TaskLayout& tasks, Address future) {
  if (tasks.callbacks) return internal::is_of_type(memory, future, tasks.callbacks->task_type);
  std::uint8_t flag = 0;
  return !is_null(future) && memory.load(offset_by(future, tasks.task.is_task), flag) && flag == 1;
}

// What a task holds.
struct TaskHead {
  Address loop{}, name{}, coroutine{};
};

// False if it is no task, or cannot be read.
template <memory::Reader M>
bool read_head(const M& memory, const TaskLayout& tasks, Address task, TaskHead& out) {
  return is_task(memory, tasks, task) && internal::load_member(memory, task, tasks.task.loop, out.loop) &&
         internal::load_member(memory, task, tasks.task.name, out.name) &&
         internal::load_member(memory, task, tasks.task.coroutine, out.coroutine);
}

namespace internal {

// Calls visit(Address) for what is in a set, until it returns false; at most `slots_left` places are looked at.
template <memory::Reader M, typename Visit>
AwaiterScan scan_set(const M& memory, const TaskLayout& tasks, Address set, std::uint64_t& slots_left, Visit visit) {
  Address table{};
  std::uint64_t mask = 0;
  std::uint64_t used = 0;
  if (!load_member(memory, set, tasks.set.table, table) || !memory.load(offset_by(set, tasks.set.mask), mask) ||
      !memory.load(offset_by(set, tasks.set.used), used))
    return AwaiterScan::kTorn;
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i <= mask; ++i) {
    constexpr std::uint64_t kEntry = 16, kRemoved = ~std::uint64_t{0};
    if (slots_left == 0) return AwaiterScan::kStopped;
    --slots_left;
    Address key{};
    std::uint64_t hash = 0;
    if (!memory::load_address(memory, offset_by(table, i * kEntry), key) ||
        !memory.load(offset_by(table, i * kEntry + 8), hash))
      return AwaiterScan::kTorn;
    if (is_null(key) || hash == kRemoved) continue;
    ++found;
    if (!visit(key)) return AwaiterScan::kStopped;
  }
  // While it grows its entries are on their way from one table to another.
  return found == used ? AwaiterScan::kAll : AwaiterScan::kTorn;
}

}  // namespace internal

// Calls visit(Address) for each Future or task that awaits a Future, until it returns false. `kind_of(Address)` says
// what an object is; of sets at most `slots_left` places are looked at.
template <memory::Reader M, typename KindOf, typename Visit>
AwaiterScan each_awaiter(const M& memory, const TaskPlaces& places, Address future, KindOf kind_of,
                         std::uint64_t& slots_left, Visit visit) {
  const TaskLayout& tasks = places.tasks;
  if (tasks.callbacks) return scan_callbacks(memory, places.layout, *tasks.callbacks, future, slots_left, visit);
  Address awaiter{};
  std::uint8_t is_set = 0;
  if (!internal::load_member(memory, future, tasks.task.awaited_by, awaiter) ||
      !memory.load(offset_by(future, tasks.task.awaited_by_is_set), is_set))
    return AwaiterScan::kTorn;
  if (is_null(awaiter)) return AwaiterScan::kAll;
  // The second one makes it a set, and only then is it said to be one.
  if ((is_set != 0) != (kind_of(awaiter) == AwaitKind::kSet)) return AwaiterScan::kTorn;
  if (is_set != 0) return internal::scan_set(memory, tasks, awaiter, slots_left, visit);
  return visit(awaiter) ? AwaiterScan::kAll : AwaiterScan::kStopped;
}

}  // namespace plimsoll::cpython
