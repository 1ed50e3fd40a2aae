// python/standin.h: callables of ours in the place of the program's functions, while a recording lasts.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <utility>

namespace plimsoll::python {

// Stands for a function of the program's, which it calls; native, so that it leaves no frame in a traceback. It is
// equal to that function: `os.execve in os.supports_fd`.
class Standin {
 public:
  explicit Standin(nanobind::object original) : original_(std::move(original)) {}

  [[nodiscard]] std::string repr() const { return nanobind::repr(original_).c_str(); }
  [[nodiscard]] bool equals(const nanobind::object& other) const { return original_.equal(other); }
  [[nodiscard]] Py_hash_t hash() const { return nanobind::hash(original_); }

 protected:
  [[nodiscard]] nanobind::object call_original(const nanobind::tuple& args, const nanobind::kwargs& kwargs) const {
    return original_(*args, **kwargs);
  }

 private:
  nanobind::object original_;
};

// The Python class of a stand-in, with its member `call`.
template <typename T>
void bind_standin(nanobind::module_& module, const char* name, const char* what) {
  nanobind::class_<T>(module, name, what)
      .def(nanobind::init<nanobind::object>())
      .def("__call__", &T::call)
      .def("__repr__", [](const T& self) { return self.repr(); })
      .def("__eq__", [](const T& self, const nanobind::object& other) { return self.equals(other); })
      .def("__hash__", [](const T& self) { return self.hash(); });
}

}  // namespace plimsoll::python
