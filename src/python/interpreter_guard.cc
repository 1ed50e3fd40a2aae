#include "python/interpreter_guard.h"

#include <algorithm>
#include <array>

#include "python/compat.h"

namespace plimsoll::python {
namespace {

// Modules that make interpreters with GILs of their own.
constexpr const char* kMaker = "_interpreters";
constexpr std::array<const char*, 4> kModules{kMaker, "_xxsubinterpreters", "_testcapi", "_testinternalcapi"};

Status (*prepare_for_next)() = nullptr;

// _interpreters.create, whose own function is `original`.
PyObject* make_interpreter(PyObject* original, PyObject* args, PyObject* kwargs) {
  const Status prepared = prepare_for_next();
  if (prepared.ok()) return PyObject_Call(original, args, kwargs);
  PyErr_SetString(PyExc_RuntimeError, prepared.error().message.c_str());
  return nullptr;
}
PyMethodDef maker{"create", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&make_interpreter)),
                  METH_VARARGS | METH_KEYWORDS, "Creates an interpreter."};

bool is_ours(PyObject* function) {
  return PyCFunction_Check(function) && PyCFunction_GetFunction(function) == maker.ml_meth;
}

// False if there is such a module and its function may be called past ours.
bool guard(PyObject* modules) {
  if (PY_VERSION_HEX < 0x030D0000) return PyDict_GetItemString(modules, kMaker) == nullptr;
  PyObject* module = PyImport_ImportModule(kMaker);
  PyObject* create = module != nullptr ? PyObject_GetAttrString(module, "create") : nullptr;
  if (create == nullptr) PyErr_Clear();
  bool is_guarded = module == nullptr || (create != nullptr && is_ours(create));
  // Held by the module and by us: nobody else has taken it out of there.
  if (create != nullptr && !is_guarded && Py_REFCNT(create) == 2) {
    PyObject* name = PyUnicode_FromString(kMaker);
    PyObject* ours = PyCFunction_NewEx(&maker, create, name);
    is_guarded = ours != nullptr && PyObject_SetAttrString(module, "create", ours) == 0;
    PyErr_Clear();
    Py_XDECREF(ours);
    Py_XDECREF(name);
  }
  Py_XDECREF(create);
  Py_XDECREF(module);
  return is_guarded;
}

}  // namespace

bool may_have_interpreters_at_once(Status (*prepare)()) {
  if (!kInterpretersHaveOwnGils) return false;
  prepare_for_next = prepare;
  PyInterpreterState* first = PyInterpreterState_Head();
  if (first != nullptr && PyInterpreterState_Next(first) != nullptr) return true;
  PyObject* modules = PyImport_GetModuleDict();
  if (modules == nullptr) return true;
  const bool may_be_made = std::any_of(kModules.begin(), kModules.end(), [&](const char* name) {
    return name != kMaker && PyDict_GetItemString(modules, name) != nullptr;
  });
  return may_be_made || !guard(modules);
}

bool makes_interpreters(std::string_view module) {
  return kInterpretersHaveOwnGils && std::find(kModules.begin(), kModules.end(), module) != kModules.end();
}

}  // namespace plimsoll::python
