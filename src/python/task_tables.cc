#include "python/task_tables.h"

#include <Python.h>
#include <unistd.h>

#include <string>

#include "memory/local.h"
#include "remote/target.h"

namespace plimsoll::python {
namespace {

Error differs(const cpython::Version& version, const char* what) {
  return Error{ErrorKind::kUnsupported, "this build of Python " + version.text() +
                                            " does not keep its tasks where it says (" + what +
                                            "): those who await them are not recorded"};
}

// A task that has not begun, as Python sees it. (Borrowed references.)
struct KnownTask {
  PyObject *task = nullptr, *loop = nullptr, *coroutine = nullptr, *code = nullptr, *awaiter = nullptr;
  const char* name = nullptr;
  PyObject* callbacks = nullptr;  // of KnownCallbacks; None from 3.14 on
};

// What a Python up to 3.13 shows of its callbacks: KnownTask._let_it_await of python/plimsoll/_tasks.py.
struct KnownCallbacks {
  PyObject *awaiting = nullptr, *wakeup = nullptr, *future_type = nullptr, *task_type = nullptr,
           *current_tasks = nullptr, *closures = nullptr, *partial_type = nullptr, *group_member_done = nullptr,
           *release_waiter = nullptr;
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
  const auto scan = cpython::each_awaiter(memory, places, task, kind_of, places_left, [&](Address found) {
    awaiter = found;
    return true;
  });
  if (scan != cpython::AwaiterScan::kAll || awaiter != address_of(known.awaiter) ||
      !cpython::is_task(memory, places.tasks, awaiter))
    return differs(version, "those who await a task");
  return Ok{};
}

// From a member of the probe to the layout; null and None are no address.
Address address_or_null(PyObject* object) { return object == Py_None ? Address{} : address_of(object); }

Address first_member(PyObject* object) {
  Address first{};
  const Address at = offset_by(address_of(object), sizeof(PyObject));
  return memory::load_address(memory::LocalReader{}, at, first) ? first : Address{};
}

// False if there are more closures than a layout has room for.
bool set_closures(PyObject* closures, cpython::FutureCallbacks& out) {
  const Py_ssize_t count = PyList_Size(closures);
  if (count < 0 || static_cast<std::size_t>(count) > out.closures.size()) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* code = nullptr;
    unsigned int cell = 0;
    if (PyArg_ParseTuple(PyList_GetItem(closures, i), "OI", &code, &cell) == 0) return false;
    out.closures[static_cast<std::size_t>(i)] = {address_of(code), cell};
  }
  return true;
}

// Up to 3.13: the awaiter is suspended in a coroutine that its own awaits, and this thread seems to be in the step of
// the task.
Status check_step(const cpython::TaskPlaces& places, const KnownTask& known, const KnownCallbacks& callbacks,
                  Address thread_state) {
  const memory::LocalReader memory;
  const cpython::Version& version = places.layout.version;
  Address running{};
  if (!cpython::load_current_task(memory, places.layout, *places.tasks.callbacks, thread_state, running) ||
      running != address_of(known.task))
    return differs(version, "the task that runs");
  cpython::AwaitStep step;
  step.next = address_of(callbacks.awaiting);
  std::size_t frames = 0;
  for (constexpr std::size_t kMost = 8; !is_null(step.next) && frames < kMost; frames += step.has_frame ? 1 : 0)
    step = cpython::step_along(memory, places, step.next, cpython::read_kind(memory, places, step.next));
  if (frames != 2 || step.end != cpython::AwaitEnd::kFuture || step.awaited != address_of(known.task))
    return differs(version, "what a coroutine awaits");
  return Ok{};
}

Result<cpython::TaskLayout> find_older_tasks(const capture::Interpreter& interpreter, const KnownTask& task) {
  const cpython::Version& version = interpreter.layout.version;
  Result<cpython::TaskLayout> found =
      cpython::find_older_tasks(memory::LocalReader{}, interpreter.layout, interpreter.runtime);
  if (!found.ok()) return found;
  cpython::TaskLayout tasks = found.take();
  cpython::FutureCallbacks& out = *tasks.callbacks;
  KnownCallbacks known;
  if (PyTuple_Check(task.callbacks) == 0 ||
      PyArg_ParseTuple(task.callbacks, "OOOOOO!OOO", &known.awaiting, &known.wakeup, &known.future_type,
                       &known.task_type, &known.current_tasks, &PyList_Type, &known.closures, &known.partial_type,
                       &known.group_member_done, &known.release_waiter) == 0 ||
      !set_closures(known.closures, out)) {
    PyErr_Clear();
    return differs(version, "its callbacks");
  }
  out.current_tasks = address_of(known.current_tasks);
  out.future_type = address_of(known.future_type);
  out.task_type = address_of(known.task_type);
  out.wakeup_type = address_of(Py_TYPE(known.wakeup));
  if (PyCFunction_Check(known.wakeup) != 0) out.wakeup_method = first_member(known.wakeup);
  out.function_type = address_of(&PyFunction_Type);
  out.cell_type = address_of(&PyCell_Type);
  out.method_type = address_of(&PyMethod_Type);
  out.partial_type = address_of(known.partial_type);
  out.group_member_done = address_or_null(known.group_member_done);
  out.release_waiter = address_or_null(known.release_waiter);
  const Address thread_state = interpreter.thread_state_of_caller().address;
  const cpython::TaskPlaces places{interpreter.layout, tasks, interpreter.code_type};
  PLIMSOLL_TRY(check_task(places, task));
  PLIMSOLL_TRY(check_step(places, task, known, thread_state));
  return tasks;
}

}  // namespace

Result<cpython::TaskLayout> find_tasks(const capture::Interpreter& interpreter, PyObject* known) {
  const cpython::Layout& layout = interpreter.layout;
  KnownTask task;
  if (PyArg_ParseTuple(known, "OOOOOsO", &task.task, &task.loop, &task.coroutine, &task.code, &task.awaiter, &task.name,
                       &task.callbacks) == 0) {
    PyErr_Clear();
    return differs(layout.version, "no task of its own");
  }
  if (!cpython::tells_of_tasks(layout.version).ok()) return find_older_tasks(interpreter, task);
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
