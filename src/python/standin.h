// python/standin.h: callables of ours in the place of the program's functions, while a recording lasts.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <utility>

namespace plimsoll::python {

// Stands for a function of the program's, which it calls; native, so that it leaves no frame in a traceback, and is no
// method where it is kept in a class. It is equal to that function: `os.execve in os.supports_fd`. Whoever asks for its
// attributes gets that function's: its name, its signature, and how pickle finds it.
class Standin {
 public:
  explicit Standin(nanobind::object original) : original_(std::move(original)) {}

  [[nodiscard]] std::string repr() const { return nanobind::repr(original_).c_str(); }
  [[nodiscard]] bool equals(const nanobind::object& other) const { return original_.equal(other); }
  [[nodiscard]] Py_hash_t hash() const { return nanobind::hash(original_); }
  [[nodiscard]] const nanobind::object& original() const { return original_; }

 protected:
  [[nodiscard]] nanobind::object call_original(const nanobind::tuple& args, const nanobind::kwargs& kwargs) const {
    return original_(*args, **kwargs);
  }

 private:
  nanobind::object original_;
};

template <typename T>
PyObject* attribute_of_original(PyObject* self, PyObject* name) {
  // (One whose constructor has not run has no original yet.)
  const bool is_made = nanobind::inst_ready(self);
  return is_made ? PyObject_GetAttr(nanobind::inst_ptr<T>(self)->original().ptr(), name)
                 : PyObject_GenericGetAttr(self, name);
}

// The Python class of a stand-in, with its member `call`. It is made of the original and of `More`.
template <typename T, typename... More>
void bind_standin(nanobind::module_& module, const char* name, const char* what) {
  static PyType_Slot slots[] = {{Py_tp_getattro, reinterpret_cast<void*>(&attribute_of_original<T>)}, {0, nullptr}};
  nanobind::class_<T>(module, name, what, nanobind::type_slots(slots), nanobind::is_weak_referenceable())
      .def(nanobind::init<nanobind::object, More...>())
      .def("__call__", &T::call)
      .def("__repr__", [](const T& self) { return self.repr(); })
      .def("__eq__", [](const T& self, const nanobind::object& other) { return self.equals(other); })
      .def("__hash__", [](const T& self) { return self.hash(); });
}

}  // namespace plimsoll::python
