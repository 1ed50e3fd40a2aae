#include <Python.h>

#include "python/bindings.h"

namespace plimsoll::python {
namespace {

// Set once while the module is imported, and kept for ever: exception classes outlive every call.
PyObject* profile_error = nullptr;
PyObject* unsupported_error = nullptr;

PyObject* class_for(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage: return PyExc_ValueError;
    case ErrorKind::kPermission: return PyExc_PermissionError;
    case ErrorKind::kBadInput: return profile_error;
    case ErrorKind::kUnsupported: return unsupported_error;
    case ErrorKind::kSystem: return PyExc_OSError;
  }
  return PyExc_RuntimeError;
}

}  // namespace

void raise(const Error& error) {
  // Names of files and words of programs are in it, which need not be UTF-8.
  PyObject* text = PyUnicode_DecodeUTF8(error.message.data(), static_cast<Py_ssize_t>(error.message.size()), "replace");
  if (text != nullptr) PyErr_SetObject(class_for(error.kind), text);
  Py_XDECREF(text);
  throw nanobind::python_error();
}

void bind_errors(nanobind::module_& module) {
  profile_error = PyErr_NewExceptionWithDoc("plimsoll.ProfileError", "A file is not a profile, or is damaged.",
                                            PyExc_ValueError, nullptr);
  unsupported_error =
      PyErr_NewExceptionWithDoc("plimsoll.UnsupportedError", "This system, kernel or Python cannot do what was asked.",
                                PyExc_RuntimeError, nullptr);
  module.attr("ProfileError") = nanobind::borrow(profile_error);
  module.attr("UnsupportedError") = nanobind::borrow(unsupported_error);
}

}  // namespace plimsoll::python
