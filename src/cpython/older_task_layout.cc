#include "cpython/task_layout.h"

namespace plimsoll::cpython {
namespace {

// Of a minor version, measured: FutureObj and TaskObj of Modules/_asynciomodule.c.
struct TaskMembers {
  std::uint32_t waits_for, coroutine, name;
};

constexpr TaskMembers task_members(unsigned minor) {
  switch (minor) {
    case 9: return {144, 152, 160};
    case 10: return {152, 160, 168};
    case 13: return {112, 120, 128};
    default: return {128, 136, 144};
  }
}

void set_coroutine(unsigned minor, const ObjectFields& fields, TaskLayout& out) {
  auto& coroutine = out.coroutine;
  constexpr std::uint32_t kWord = 8;
  coroutine.awaited = kWord;
  coroutine.created = minor >= 13 ? -3 : -2;
  coroutine.executing = 0;
  coroutine.first_awaiting = coroutine.last_awaiting = -1;
  coroutine.first_ended = 1;
  if (minor >= 11) {
    coroutine.frame = fields.generator.frame;
    coroutine.frame_state = fields.generator.state;
    coroutine.await_sign = minor >= 13 ? AwaitSign::kState : AwaitSign::kResume;
    coroutine.stack_style = StackStyle::kCount;
    coroutine.stack_top = fields.frame.stack;
    coroutine.stack_values = fields.frame.variables;
    return;
  }
  // gi_frame is the first member; then gi_running (3.9).
  constexpr std::uint32_t kFrame = 16, kRunning = 24, kState = 108, kValues = 64;
  coroutine.frame = kFrame;
  coroutine.frame_is_elsewhere = true;
  coroutine.await_sign = AwaitSign::kYieldFrom;
  coroutine.stack_top = fields.frame_object.stack;
  coroutine.frame_state = minor == 9 ? kRunning : kState;
  coroutine.state_style = minor == 9 ? StateStyle::kRunningFlag : StateStyle::kInFrame;
  coroutine.stack_style = minor == 9 ? StackStyle::kTop : StackStyle::kCountElsewhere;
  coroutine.stack_values = kValues;
}

}  // namespace

Result<TaskLayout> older_task_layout(const Layout& layout) {
  const Version& version = layout.version;
  if (version.major != 3 || version.minor > 13 || version.threading != Version::Threading::kGil)
    return Error{ErrorKind::kUnsupported,
                 "Plimsoll does not know where Python " + version.text() + " keeps its asyncio tasks"};
  Result<ObjectFields> fields = object_fields(version);
  if (!fields.ok()) return fields.error();
  TaskLayout out;
  out.type = {.name = type_field::kName, .flags = type_field::kFlags};
  out.set = {.table = container_field::kSetTable, .mask = container_field::kSetMask, .used = container_field::kSetUsed};
  const std::uint32_t behind_head = layout.object.type + 8;
  out.integer = {.tag = behind_head, .digits = behind_head + 8};
  set_coroutine(version.minor, fields.value(), out);
  const TaskMembers members = task_members(version.minor);
  out.task.loop = behind_head;
  out.task.name = members.name;
  out.task.coroutine = members.coroutine;

  FutureCallbacks& callbacks = out.callbacks.emplace();
  callbacks.fields = fields.take();
  callbacks.running_loop = kNoField;
  callbacks.loop_in_holder = version.minor <= 11 ? behind_head : 0;
  callbacks.first = behind_head + 8;
  callbacks.others = behind_head + 24;
  callbacks.waits_for = members.waits_for;
  callbacks.referent = behind_head;
  callbacks.wakeup_is_method = version.minor >= 10;
  callbacks.wakeup_self = version.minor == 9 ? behind_head : behind_head + 8;
  callbacks.function_code = version.minor == 9 ? behind_head : 48;
  callbacks.function_closure = version.minor == 9 ? 48 : 72;
  return out;
}

}  // namespace plimsoll::cpython
