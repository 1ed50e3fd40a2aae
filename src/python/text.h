// python/text.h: texts on their way between Python and us, where any bytes may stand.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

namespace plimsoll::python {

// A text of a file: whatever bytes stand there, it is a str. What is no UTF-8 becomes U+FFFD.
inline nanobind::str text(std::string_view bytes) {
  PyObject* decoded = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace");
  if (decoded == nullptr) throw nanobind::python_error();
  return nanobind::steal<nanobind::str>(decoded);
}

// A str as UTF-8; what is no character, such as a byte of a file's name, becomes what `errors` says, by a name of
// Python's ("replace"). False with an exception set.
inline bool utf8_of(PyObject* text, const char* errors, std::string& out) {
  Py_ssize_t size = 0;
  if (const char* plain = PyUnicode_AsUTF8AndSize(text, &size); plain != nullptr) {
    out.assign(plain, static_cast<std::size_t>(size));
    return true;
  }
  PyErr_Clear();
  const auto bytes = nanobind::steal<nanobind::object>(PyUnicode_AsEncodedString(text, "utf-8", errors));
  if (!bytes.is_valid()) return false;
  out.assign(PyBytes_AS_STRING(bytes.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr())));
  return true;
}

// The bytes of a file's name, as os.fsencode gives them, of a str, bytes or os.PathLike: those that are no UTF-8 are
// lone surrogates in a str.
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
