// cpython/task_layout.h: where CPython 3.14 and 3.15 keep coroutines, and where their module _asyncio keeps its tasks.
//
// The module publishes a table of its own, _AsyncioDebug, in a section of that name: 13 numbers without a cookie or a
// version, the same ones in both. What a coroutine looks like is in _Py_DebugOffsets.
#pragma once

#include <cstdint>

#include "cpython/layout.h"
#include "memory/reader.h"

namespace plimsoll::cpython {

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
    std::uint32_t frame;        // gi_iframe, the frame itself
    std::uint32_t frame_state;  // gi_frame_state, one byte
    std::uint32_t stack_top;    // of a frame: stackpointer, just above the newest value on its stack
    std::uint32_t awaited;      // how far below that is what a suspended one awaits
    // Values of the state: has not begun; runs, or has called what runs; is suspended in an await, first to last; has
    // returned, this and all that are larger.
    std::int8_t created, executing, first_awaiting, last_awaiting, first_ended;
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
};

inline constexpr std::size_t kAsyncioDebugSize = 13 * sizeof(std::uint64_t);

// An error for a version that has no such tables.
Status tells_of_tasks(const Version& version);

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
