#include "python/task_tables.h"

#include <Python.h>
#include <unistd.h>

#include <string>

#include "memory/local.h"
#include "remote/target.h"

namespace plimsoll::python {
namespace {

Address address_of(const void* pointer) { return Address{reinterpret_cast<std::uint64_t>(pointer)}; }

Error differs(const cpython::Version& version, const char* what) {
  return Error{ErrorKind::kUnsupported, "this build of Python " + version.text() +
                                            " does not keep its tasks where it says (" + what +
                                            "): those who await them are not recorded"};
}

// A task that has not begun, as Python sees it. (Borrowed references.)
struct KnownTask {
  PyObject *task = nullptr, *loop = nullptr, *coroutine = nullptr, *code = nullptr, *awaiter = nullptr;
  const char* name = nullptr;
};

Status check_task(const cpython::TaskPlaces& places, const KnownTask& known) {
  const memory::LocalReader memory;
  const cpython::Version& version = places.layout.version;
  const Address task = address_of(known.task);
  cpython::TaskHead head;
  if (!cpython::read_head(memory, places.tasks, task, head) || head.loop != address_of(known.loop) ||
      head.coroutine != address_of(known.coroutine))
    return differs(version, "a task's loop or coroutine");
  char name[cpython::kMostTaskNameBytes];
  std::size_t size = 0;
  if (cpython::read_kind(memory, places, head.name) != cpython::AwaitKind::kText ||
      !cpython::read_text_start(memory, places.layout, head.name, name, size) ||
      std::string_view(name, size) != known.name)
    return differs(version, "a task's name");
  const cpython::AwaitStep step =
      cpython::step_along(memory, places, head.coroutine, cpython::read_kind(memory, places, head.coroutine));
  if (step.end != cpython::AwaitEnd::kNotBegun || !step.has_frame || step.frame.code != address_of(known.code))
    return differs(version, "the frame of a coroutine");
  Address awaiter{};
  std::uint64_t places_left = 0;
  const auto kind_of = [&](Address object) { return cpython::read_kind(memory, places, object); };
  const auto scan = cpython::each_awaiter(memory, places.tasks, task, kind_of, places_left, [&](Address found) {
    awaiter = found;
    return true;
  });
  if (scan != cpython::AwaiterScan::kAll || awaiter != address_of(known.awaiter) ||
      !cpython::is_task(memory, places.tasks, awaiter))
    return differs(version, "those who await a task");
  return Ok{};
}

}  // namespace

Result<cpython::TaskLayout> find_tasks(const capture::Interpreter& interpreter, PyObject* known) {
  const cpython::Layout& layout = interpreter.layout;
  PLIMSOLL_TRY(cpython::tells_of_tasks(layout.version));
  KnownTask task;
  if (PyArg_ParseTuple(known, "OOOOOs", &task.task, &task.loop, &task.coroutine, &task.code, &task.awaiter,
                       &task.name) == 0) {
    PyErr_Clear();
    return differs(layout.version, "no task of its own");
  }
  const std::optional<Address> table = remote::find_asyncio_debug(os::Pid{::getpid()});
  if (!table)
    return Error{ErrorKind::kUnsupported, "the module _asyncio of this Python does not say where it keeps its tasks"};
  Result<cpython::TaskLayout> found =
      cpython::find_task_layout(memory::LocalReader{}, layout, interpreter.runtime, *table);
  if (!found.ok()) return found;
  PLIMSOLL_TRY(check_task({layout, found.value(), interpreter.code_type}, task));
  return found;
}

}  // namespace plimsoll::python
