// cpython/task_layout.h: where CPython keeps coroutines, and where its module _asyncio keeps its tasks.
//
// From 3.14 on the module publishes a table of its own, _AsyncioDebug, in a section of that name: 13 numbers without a
// cookie or a version, the same ones in 3.14 and 3.15. What a coroutine looks like is in _Py_DebugOffsets. Up to 3.13
// nothing is published, and a Future does not know who awaits it, but only what it calls when it is done: a table of
// ours says where (older_task_layout), and what these callbacks are is learned from the interpreter at hand.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "cpython/layout.h"
#include "cpython/object_fields.h"
#include "memory/reader.h"

namespace plimsoll::cpython {

// Where a coroutine says whether it runs.
enum class StateStyle : std::uint8_t {
  kInCoroutine,  // gi_frame_state; 3.11+
  kInFrame,      // f_state of its frame object; 3.10
  kRunningFlag,  // gi_running, and before it runs its frame has a negative position; 3.9
};

// By what a suspended coroutine is known to await something, and not to yield a value.
enum class AwaitSign : std::uint8_t {
  kState,      // its state; 3.13+
  kResume,     // how it will be resumed: the argument of the instruction behind the one it stands at; 3.11, 3.12
  kYieldFrom,  // the instruction behind the one it stands at is YIELD_FROM; 3.9, 3.10
};

// How a frame says where its stack of values ends.
enum class StackStyle : std::uint8_t {
  kTop,             // a pointer; 3.9, 3.14+
  kCount,           // how many values there are in the frame itself, with its variables; 3.11 to 3.13
  kCountElsewhere,  // how many there are where another pointer says; 3.10
};

// Up to 3.13: what Futures keep of those who wait for them, and how their callbacks are known. The addresses are those
// of the interpreter at hand; null ones do not occur.
struct FutureCallbacks {
  ObjectFields fields;
  Address current_tasks{};              // asyncio.tasks._current_tasks, a dict: event loop -> task
  Address task_references{};            // the set in _all_tasks or _scheduled_tasks, a WeakSet; null: not found
  Address eager_tasks{};                // _eager_tasks, a set of tasks in their first step; null before 3.12
  std::uint32_t running_loop = 0;       // of a thread state: its event loop; kNoField: it is in the thread's dict
  std::uint32_t loop_in_holder = 0;     // of what that dict has: the event loop; 0: it has the loop itself
  std::uint32_t first = 0, others = 0;  // of a Future: fut_callback0; fut_callbacks, a list of tuples
  std::uint32_t waits_for = 0;          // of a task: task_fut_waiter
  std::uint32_t referent = 0;           // of a weak reference: wr_object
  Address future_type{}, task_type{};
  // What wakes a task: of this type, and for this method if it is a method of C; null: known by its name.
  Address wakeup_type{}, wakeup_method{};
  bool wakeup_is_method = false;
  std::uint32_t wakeup_self = 0;  // the task
  Address function_type{}, cell_type{};
  std::uint32_t function_code = 0, function_closure = 0;
  // One of Python's functions: the Future is in a cell of its closure.
  struct Closure {
    Address code{};
    std::uint32_t cell = 0;
  };
  std::array<Closure, 4> closures{};
  Address method_type{}, group_member_done{};  // TaskGroup._on_task_done
  Address partial_type{}, release_waiter{};    // asyncio.tasks._release_waiter, whose argument is the Future
};

// Offsets in bytes, beside those of Layout. See the comments for the C names.
struct TaskLayout {
  struct {
    std::uint32_t name, flags;  // tp_name, a C string; tp_flags
  } type{};
  struct {
    std::uint32_t table, mask;  // of a set: pairs of key and hash; their number less one
    std::uint32_t used;         // how many of them are keys
  } set{};
  struct {
    std::uint32_t tag, digits;  // of an int: lv_tag; 30 bits each
  } integer{};

  // What coroutines, generators and asynchronous generators have in common.
  struct {
    std::uint32_t frame;        // gi_iframe, the frame itself; or gi_frame, a pointer to it
    std::uint32_t frame_state;  // where StateStyle says, one byte
    std::uint32_t stack_top;    // of a frame: stackpointer, just above the newest value on its stack; or a count
    std::uint32_t awaited;      // how far below that is what a suspended one awaits
    // Values of the state: has not begun; runs, or has called what runs; is suspended in an await, first to last; has
    // returned, this and all that are larger.
    std::int8_t created, executing, first_awaiting, last_awaiting, first_ended;
    bool frame_is_elsewhere = false;
    StateStyle state_style = StateStyle::kInCoroutine;
    AwaitSign await_sign = AwaitSign::kState;
    StackStyle stack_style = StackStyle::kTop;
    std::uint32_t stack_values = 0;  // of a frame: where the counted values begin, or a pointer to there
  } coroutine{};

  // A list that goes round: its head is a node of its own.
  struct {
    std::uint32_t next, previous;
  } node{};
  struct {
    std::uint32_t loop;  // the event loop; the first member of every Future
    std::uint32_t name;  // a str, or an int of which "Task-N" is made when somebody asks for it
    std::uint32_t awaited_by, awaited_by_is_set;  // null, a Future, or (one byte says so) a set of them
    std::uint32_t is_task;                        // one byte: whether a Future is a Task
    std::uint32_t coroutine, node;
  } task{};
  struct {
    std::uint32_t tasks;  // the list of tasks that were made in threads that have ended
  } interpreter{};
  struct {
    std::uint32_t running_loop, running_task, tasks;  // tasks: the list of those made in this thread
  } tstate{};
  // Of what follows 'loop' only 'name' and 'coroutine' are there, and nothing of 'interpreter' and 'tstate'.
  std::optional<FutureCallbacks> callbacks;
};

inline constexpr std::size_t kAsyncioDebugSize = 13 * sizeof(std::uint64_t);

// An error for a version that has no such tables.
Status tells_of_tasks(const Version& version);
// An error for a version of which it is not known either who awaits a task.
Status knows_awaiters(const Version& version);

// For 3.9 to 3.13 with a GIL: all but the addresses of FutureCallbacks, and of 3.13 its running_loop. Another version
// is an error.
Result<TaskLayout> older_task_layout(const Layout& layout);

// The same for the interpreter whose _PyRuntime lies there, with running_loop.
template <memory::Reader M>
Result<TaskLayout> find_older_tasks(const M& memory, const Layout& layout, Address runtime) {
  Result<TaskLayout> found = older_task_layout(layout);
  constexpr unsigned kInThreadState = 13;  // from 3.13 on
  if (!found.ok() || layout.version.minor < kInThreadState) return found;
  // Behind the PyThreadState, whose size is published. It has grown within 3.13.
  constexpr std::uint64_t kSizeOfThreadState = 152, kMost = 1U << 16U;
  std::uint64_t size = 0;
  if (!memory.load(offset_by(runtime, kSizeOfThreadState), size) || size > kMost || size % 8 != 0)
    return Error{ErrorKind::kUnsupported,
                 "Python " + layout.version.text() + " does not say where it keeps the event loop of a thread"};
  TaskLayout tasks = found.take();
  tasks.callbacks->running_loop = static_cast<std::uint32_t>(size);
  return tasks;
}

// From the bytes of _Py_DebugOffsets and of _AsyncioDebug, and the Layout that was made of the first. Every number is
// checked against the size of its structure. An error says which one is impossible, or that the version has no tables.
Result<TaskLayout> task_layout_from_tables(const Layout& layout, const unsigned char* offsets,
                                           const unsigned char* asyncio);

// Of the interpreter whose _PyRuntime and _AsyncioDebug lie there.
template <memory::Reader M>
Result<TaskLayout> find_task_layout(const M& memory, const Layout& layout, Address runtime, Address asyncio_debug) {
  unsigned char offsets[kDebugOffsetsSize];
  unsigned char asyncio[kAsyncioDebugSize];
  if (!memory.read(runtime, offsets, sizeof offsets) || !memory.read(asyncio_debug, asyncio, sizeof asyncio))
    return Error{ErrorKind::kUnsupported, "cannot read the tables that Python " + layout.version.text() +
                                              " publishes of its coroutines and tasks"};
  return task_layout_from_tables(layout, offsets, asyncio);
}

}  // namespace plimsoll::cpython
