#include "python/column.h"

#include <utility>

#include "python/bindings.h"

namespace nb = nanobind;

namespace plimsoll::python {
namespace {

// What a memoryview looks at. Not one of nanobind's own arrays: these take the GIL when they die, by PyGILState, which
// up to Python 3.11 knows the first interpreter only. In another one a thread would wait for itself.
class Column {
 public:
  Column(const ColumnBytes& bytes, nb::object owner)
      : bytes_(bytes),
        shape_(static_cast<Py_ssize_t>(bytes.count)),
        stride_(static_cast<Py_ssize_t>(bytes.item_bytes)),
        owner_(std::move(owner)) {}

  static int get_buffer(PyObject* object, Py_buffer* view, int flags) {
    view->obj = nullptr;
    if ((flags & PyBUF_WRITABLE) != 0) {
      PyErr_SetString(PyExc_BufferError, "a column can only be read");
      return -1;
    }
    static constexpr char kNothing = 0;  // a place for what is empty
    Column& self = *nb::inst_ptr<Column>(object);
    view->buf = const_cast<void*>(self.bytes_.data != nullptr ? self.bytes_.data : &kNothing);
    view->len = self.shape_ * self.stride_;
    view->readonly = 1;
    view->itemsize = self.stride_;
    view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(self.bytes_.format) : nullptr;
    view->ndim = 1;
    view->shape = (flags & PyBUF_ND) != 0 ? &self.shape_ : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? &self.stride_ : nullptr;
    view->suboffsets = nullptr;
    view->internal = nullptr;
    Py_INCREF(object);
    view->obj = object;
    return 0;
  }

 private:
  ColumnBytes bytes_;
  Py_ssize_t shape_, stride_;
  nb::object owner_;
};

const PyType_Slot kSlots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(Column::get_buffer)}, {0, nullptr}};

}  // namespace

nb::object memory_view(const ColumnBytes& bytes, nb::object owner) {
  const nb::object column = nb::cast(Column(bytes, std::move(owner)));
  PyObject* view = PyMemoryView_FromObject(column.ptr());
  if (view == nullptr) throw nb::python_error();
  return nb::steal(view);
}

void bind_columns(nb::module_& module) {
  nb::class_<Column>(module, "_Column", nb::type_slots(kSlots), "What a memoryview of a column looks at.");
}

}  // namespace plimsoll::python
