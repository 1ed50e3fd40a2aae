#include "cpython/task_layout.h"

#include "cpython/offset_reader.h"

namespace plimsoll::cpython {
namespace {

// Places in _Py_DebugOffsets, in words from its cookie: a group's size, then its fields.
struct Places {
  std::size_t frame, stack_pointer;
  std::size_t type, type_name, type_flags;
  std::size_t set, set_used, set_table, set_mask;
  std::size_t integer, integer_tag, integer_digits;
  std::size_t generator, generator_frame, generator_state;
  std::size_t node_next, node_previous;
};
// clang-format off
constexpr Places kPlaces314{
    .frame = 31, .stack_pointer = 37,
    .type = 52, .type_name = 53, .type_flags = 55,
    .set = 62, .set_used = 63, .set_table = 64, .set_mask = 65,
    .integer = 71, .integer_tag = 72, .integer_digits = 73,
    .generator = 83, .generator_frame = 85, .generator_state = 86,
    .node_next = 87, .node_previous = 88};
constexpr Places kPlaces315{
    .frame = 39, .stack_pointer = 45,
    .type = 60, .type_name = 61, .type_flags = 63,
    .set = 74, .set_used = 75, .set_table = 76, .set_mask = 77,
    .integer = 83, .integer_tag = 84, .integer_digits = 85,
    .generator = 99, .generator_frame = 101, .generator_state = 102,
    .node_next = 103, .node_previous = 104};
// clang-format on

// Places in _AsyncioDebug.
enum Place : std::uint8_t {
  kTask,
  kTaskName,
  kTaskAwaitedBy,
  kTaskIsTask,
  kTaskAwaitedByIsSet,
  kTaskCoroutine,
  kTaskNode,
  kInterpreter,
  kInterpreterTasks,
  kThread,
  kThreadRunningLoop,
  kThreadRunningTask,
  kThreadTasks,
};

constexpr std::uint64_t kPointer = 8, kByte = 1, kNode = 16;

void read_coroutine_fields(OffsetReader& read, const Places& at, TaskLayout& out) {
  out.type = {.name = read.field("type_object.tp_name", at.type, at.type_name, kPointer),
              .flags = read.field("type_object.tp_flags", at.type, at.type_flags, kPointer)};
  out.set = {.table = read.field("set_object.table", at.set, at.set_table, kPointer),
             .mask = read.field("set_object.mask", at.set, at.set_mask, kPointer),
             .used = read.field("set_object.used", at.set, at.set_used, kPointer)};
  out.integer = {.tag = read.field("long_object.lv_tag", at.integer, at.integer_tag, kPointer),
                 .digits = read.field("long_object.ob_digit", at.integer, at.integer_digits, 4)};
  out.coroutine.frame = read.field("gen_object.gi_iframe", at.generator, at.generator_frame, kPointer);
  out.coroutine.frame_state = read.field("gen_object.gi_frame_state", at.generator, at.generator_state, kByte);
  out.coroutine.stack_top = read.field("interpreter_frame.stackpointer", at.frame, at.stack_pointer, kPointer);
  // A node has two pointers; its size is not published.
  const std::uint64_t next = read.word(at.node_next);
  const std::uint64_t previous = read.word(at.node_previous);
  if (next > kNode - kPointer || previous > kNode - kPointer) read.refuse("llist_node");
  out.node = {.next = static_cast<std::uint32_t>(next), .previous = static_cast<std::uint32_t>(previous)};
}

void read_task_fields(OffsetReader& read, const Layout& layout, TaskLayout& out) {
  out.task = {.loop = layout.object.type + 8,
              .name = read.field("task.task_name", kTask, kTaskName, kPointer),
              .awaited_by = read.field("task.task_awaited_by", kTask, kTaskAwaitedBy, kPointer),
              .awaited_by_is_set = read.field("task.task_awaited_by_is_set", kTask, kTaskAwaitedByIsSet, kByte),
              .is_task = read.field("task.task_is_task", kTask, kTaskIsTask, kByte),
              .coroutine = read.field("task.task_coro", kTask, kTaskCoroutine, kPointer),
              .node = read.field("task.task_node", kTask, kTaskNode, kNode)};
  out.interpreter = {.tasks =
                         read.field("interpreter_state.asyncio_tasks_head", kInterpreter, kInterpreterTasks, kNode)};
  out.tstate = {.running_loop = read.field("thread_state.asyncio_running_loop", kThread, kThreadRunningLoop, kPointer),
                .running_task = read.field("thread_state.asyncio_running_task", kThread, kThreadRunningTask, kPointer),
                .tasks = read.field("thread_state.asyncio_tasks_head", kThread, kThreadTasks, kNode)};
}

// What no table says: the states of a frame, and what lies on the stack of one that awaits.
void set_coroutine_states(const Version& version, TaskLayout& out) {
  constexpr std::uint32_t kWord = 8;
  if (version.minor >= 15) {
    // Above what is awaited there is an index, for iterators that are none. And one state says that it is locked.
    out.coroutine.awaited = 2 * kWord;
    out.coroutine.created = 0;
    out.coroutine.executing = 4;
    out.coroutine.first_awaiting = 2;
    out.coroutine.last_awaiting = 3;
    out.coroutine.first_ended = 5;
  } else {
    out.coroutine.awaited = kWord;
    out.coroutine.created = -3;
    out.coroutine.executing = 0;
    out.coroutine.first_awaiting = out.coroutine.last_awaiting = -1;
    out.coroutine.first_ended = 1;
  }
}

Error impossible(const Version& version, const char* table, const char* field) {
  return Error{ErrorKind::kUnsupported, "Python " + version.text() + " publishes an impossible offset for " + field +
                                            " in " + table + ": the tasks of this build cannot be read"};
}

}  // namespace

Status tells_of_tasks(const Version& version) {
  if (version.major == 3 && version.minor >= 14 && version.minor <= 15) return Ok{};
  return Error{ErrorKind::kUnsupported, "the tasks of Python " + version.text() +
                                            " cannot be read from outside: CPython tells where it keeps them since "
                                            "3.14"};
}

Status knows_awaiters(const Version& version) {
  if (version.major == 3 && version.minor <= 13 && version.threading == Version::Threading::kGil) return Ok{};
  return tells_of_tasks(version);
}

Result<TaskLayout> task_layout_from_tables(const Layout& layout, const unsigned char* offsets,
                                           const unsigned char* asyncio) {
  const Version& version = layout.version;
  PLIMSOLL_TRY(tells_of_tasks(version));
  TaskLayout out;
  OffsetReader general(offsets);
  read_coroutine_fields(general, version.minor >= 15 ? kPlaces315 : kPlaces314, out);
  if (general.bad_field() != nullptr) return impossible(version, "_Py_DebugOffsets", general.bad_field());
  OffsetReader own(asyncio);
  read_task_fields(own, layout, out);
  if (own.bad_field() != nullptr) return impossible(version, "_AsyncioDebug", own.bad_field());
  set_coroutine_states(version, out);
  return out;
}

}  // namespace plimsoll::cpython
