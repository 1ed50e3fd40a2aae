// python/module.cc: the extension module plimsoll._core. Thin: convert, call, convert back.
#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>

#include "python/bindings.h"

// nanobind's own function that makes the module: ours, below, is called first.
#define PyInit__core plimsoll_make_core  // NOLINT(bugprone-reserved-identifier)
NB_MODULE(_core, module) {
  module.doc() = "The C++ half of Plimsoll. Use the package plimsoll, not this module.";
  module.attr("version") = PLIMSOLL_VERSION;
  // Daemon threads outlive the interpreter with all that they hold; nobody wants to read of that at the end.
  nanobind::set_leak_warnings(false);
  plimsoll::python::bind_errors(module);
  plimsoll::python::bind_files(module);
  plimsoll::python::bind_session(module);
  plimsoll::python::bind_threads(module);
  plimsoll::python::bind_processes(module);
  plimsoll::python::bind_signals(module);
  plimsoll::python::bind_tags(module);
  plimsoll::python::bind_columns(module);
  plimsoll::python::bind_profile(module);
  plimsoll::python::bind_heap(module);
  plimsoll::python::bind_heap_sets(module);
  plimsoll::python::bind_memory(module);
  plimsoll::python::bind_native(module);
}
#undef PyInit__core

namespace plimsoll::python {
namespace {

// The interpreter that has the module: its id, which no other one gets.
std::atomic<std::int64_t> owner{-1};
int (*fill_by_nanobind)(PyObject*) = nullptr;

bool is_alive(std::int64_t id) {
  for (PyInterpreterState* each = PyInterpreterState_Head(); each != nullptr; each = PyInterpreterState_Next(each))
    if (PyInterpreterState_GetID(each) == id) return true;
  return false;
}

// A module is filled in the interpreter that imports it. nanobind knows its classes for one interpreter at a time:
// those of the first were no longer known, and a recording that was going on there could not be ended.
int fill(PyObject* module) {
  const std::int64_t ours = PyInterpreterState_GetID(PyInterpreterState_Get());
  if (owner != ours && is_alive(owner)) {
    PyErr_SetString(PyExc_ImportError,
                    "module plimsoll._core does not support loading in subinterpreters while another interpreter of "
                    "the process has it");
    return -1;
  }
  const int failed = fill_by_nanobind(module);
  if (failed == 0) owner = ours;
  return failed;
}

}  // namespace
}  // namespace plimsoll::python

extern "C" NB_EXPORT PyObject* PyInit__core() {
  PyObject* made = plimsoll_make_core();
  if (made == nullptr) return nullptr;
  for (PyModuleDef_Slot* slot = reinterpret_cast<PyModuleDef*>(made)->m_slots; slot->slot != 0; ++slot) {
    if (slot->slot != Py_mod_exec || slot->value == reinterpret_cast<void*>(plimsoll::python::fill)) continue;
    plimsoll::python::fill_by_nanobind = reinterpret_cast<int (*)(PyObject*)>(slot->value);
    slot->value = reinterpret_cast<void*>(plimsoll::python::fill);
  }
  return made;
}
