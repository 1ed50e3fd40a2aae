// python/file_path.h: names of files on their way from Python, where bytes that are no UTF-8 are lone surrogates.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace plimsoll::python {

// The bytes of a name, as os.fsencode gives them, of a str, bytes or os.PathLike.
struct FilePath {
  std::string bytes;
};

}  // namespace plimsoll::python

namespace nanobind::detail {

// What nanobind makes of an argument of that type.
template <>
struct type_caster<plimsoll::python::FilePath> {
  NB_TYPE_CASTER(plimsoll::python::FilePath, const_name("str"))

  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    PyObject* encoded = nullptr;
    if (PyUnicode_FSConverter(source.ptr(), &encoded) == 0) {
      PyErr_Clear();
      return false;
    }
    value.bytes.assign(PyBytes_AS_STRING(encoded), static_cast<std::size_t>(PyBytes_GET_SIZE(encoded)));
    Py_DECREF(encoded);
    return true;
  }
};

}  // namespace nanobind::detail
