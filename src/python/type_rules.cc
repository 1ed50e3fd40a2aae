#include "python/type_rules.h"

#include <fnmatch.h>

#include "python/type_plan.h"

namespace plimsoll::python {
namespace {

template <typename T>
void take(std::optional<T>& into, const std::optional<T>& from) {
  if (!into) into = from;
}

}  // namespace

std::vector<TypeRule> built_in_rules() {
  // Offsets into the objects of C structures that have not changed from 3.9 to 3.15. tests/python/test_heap_rules.py
  // holds each against buffers of known size.
  return {
      // mmap_object: data, size.
      {"mmap.mmap", Reach::kInstances, {NativeMemory{0, 8}, {}}},
      // CDataObject: b_ptr, b_needsfree, b_base, b_size.
      {"_ctypes._CData", Reach::kInstances, {NativeMemory{0, 24, 1, 8}, {}}},
      // stringio: buf, pos, string_size, buf_size in characters of 4 bytes.
      {"_io.StringIO", Reach::kInstances, {NativeMemory{0, 24, 4}, {}}},
  };
}

Facets facets_of(PyTypeObject* type, const std::vector<TypeRule>& rules) {
  Facets found;
  PyObject* order = type->tp_mro;
  for (Py_ssize_t i = 0; order != nullptr && i < PyTuple_GET_SIZE(order); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(order, i));
    const std::string name = name_of(base);
    for (auto rule = rules.rbegin(); rule != rules.rend(); ++rule) {
      if (rule->reach == Reach::kExactly && base != type) continue;
      if (::fnmatch(rule->classes.c_str(), name.c_str(), FNM_NOESCAPE) != 0) continue;
      take(found.native, rule->facets.native);
      take(found.label, rule->facets.label);
    }
  }
  return found;
}

}  // namespace plimsoll::python
