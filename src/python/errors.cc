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

// The class of OSError for an errno: FileNotFoundError, for example.
nanobind::object class_for_errno(int errno_value) {
  const nanobind::object made = nanobind::borrow(PyExc_OSError)(errno_value, "");
  return nanobind::borrow(made.type());
}

}  // namespace

void raise(const Error& error) {
  // Names of files and words of programs are in it, which need not be UTF-8.
  const nanobind::str message = text(error.message);
  const bool is_systems = error.kind == ErrorKind::kSystem || error.kind == ErrorKind::kPermission;
  if (!is_systems || error.errno_value == 0) {
    PyErr_SetObject(class_for(error.kind), message.ptr());
  } else {
    // (Made with its errno, it would begin with "[Errno 2]", which says again what the message says.)
    nanobind::object exception = class_for_errno(error.errno_value)(message);
    exception.attr("errno") = error.errno_value;
    PyErr_SetObject(exception.type().ptr(), exception.ptr());
  }
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
