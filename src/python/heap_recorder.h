// python/heap_recorder.h: pass 2 of a snapshot from inside: the objects that were found -> words, of which rows are
// made.
#pragma once

#include <Python.h>

#include <algorithm>
#include <charconv>
#include <span>
#include <string>

#include "cpython/literals.h"
#include "heap/address_set.h"
#include "heap/content_hash.h"
#include "heap/pools.h"
#include "python/heap_allocations.h"
#include "python/heap_capture.h"
#include "python/heap_rows.h"
#include "python/object_edges.h"

namespace plimsoll::python {

// Looks at objects that were found. A sink for ObjectEdges.
class Recorder {
 public:
  static constexpr bool kTellsNames = true;

  Recorder(TypePlans& plans, const heap::AddressSet& found, Values values, const heap::BlockCount& blocks,
           HeapAllocations& allocations, heap::WordStream& words)
      : found_(found),
        values_(values),
        blocks_(blocks),
        allocations_(allocations),
        words_(words),
        edges_(plans, *this) {}

  void object(PyObject* object, const TypePlan& plan) {
    begin(object, plan);
    tell_content(object, plan);
    if (allocations_.are_known()) {
      const auto stack = allocations_.stack_of(reinterpret_cast<const char*>(object) - plan.header);
      if (stack) words_.allocated_by(*stack);
    }
    edges_.visit(object, plan);
    if (plan.has_name || values_ == Values::kShown)
      if (const std::string text = text_of_object(object, plan); !text.empty()) words_.text(text);
  }

  void edge(heap::EdgeKind kind, PyObject* held) { words_.edge(kind, address_of(held)); }
  template <typename Name>
  void named(PyObject* held, Name name) {
    words_.named(address_of(held), name);
  }
  void type() { words_.edge(heap::EdgeKind::kType, Address{}); }
  void weak(PyObject* held) { words_.edge(heap::EdgeKind::kWeak, address_of(held)); }
  static void name_space(PyObject*) {}
  bool has_names(PyObject* dict) const { return found_.is_marked(address_of(dict)); }
  [[nodiscard]] const heap::BlockCount& blocks() const { return blocks_; }

 private:
  void begin(PyObject* object, const TypePlan& plan, std::uint64_t bytes) {
    words_.object(address_of(object), plan.number, reference_count(object), is_on_a_list(object), bytes);
  }
  void begin(PyObject* object, const TypePlan& plan) {
    if (const std::uint64_t bytes = one_block(object, plan); bytes != 0) {
      blocks_.add(raw(address_of(object)), {bytes});
      return begin(object, plan, bytes);
    }
    const heap::ObjectSize size = size_of(object, plan);
    blocks_.add(raw(address_of(object)), size);
    begin(object, plan, size.total());
    for (const heap::NativeExtent& extent : {size.native, size.block})
      if (extent.size != 0) words_.buffer(extent.start, extent.size);
  }

  // Of exactly a str or bytes: others are told apart by what they are.
  void tell_content(PyObject* object, const TypePlan& plan) {
    if (plan.content == Content::kNone) return;
    if (plan.content == Content::kBytes) {
      words_.content(hash_of(PyBytes_AS_STRING(object), static_cast<std::size_t>(PyBytes_GET_SIZE(object)), 0));
    } else if (PyUnicode_IS_READY(object) != 0) {
      const auto kind = static_cast<std::uint8_t>(PyUnicode_KIND(object));
      const auto size = static_cast<std::size_t>(PyUnicode_GET_LENGTH(object)) * kind;
      words_.content(hash_of(PyUnicode_DATA(object), size, kind));
    }
  }
  // (Here, where the characters are in reach of this CPU, next to what was just looked at.)
  [[nodiscard]] std::uint64_t hash_of(const void* content, std::size_t size, std::uint8_t tag) const {
    return hash_.of({static_cast<const char*>(content), size}, tag);
  }

  static constexpr Py_ssize_t kLongestName = 200, kLongestValue = 100;

  std::string text_of_object(PyObject* object, const TypePlan& plan) const {
    if (plan.shape == Shape::kClass) return name_of(reinterpret_cast<PyTypeObject*>(object));
    if (plan.shape == Shape::kCode) return text_of(reinterpret_cast<PyCodeObject*>(object)->co_name, kLongestName);
    if (plan.shape == Shape::kModule) return module_name(object);
    if (plan.type == &PyFunction_Type)
      return text_of(reinterpret_cast<PyFunctionObject*>(object)->func_qualname, kLongestName);
    if (plan.type == &PyCFunction_Type) return reinterpret_cast<PyCFunctionObject*>(object)->m_ml->ml_name;
    if (plan.facets.label) return label_of(object, plan);
    return values_ == Values::kShown ? value_of(object) : std::string{};
  }

  // The attribute that a rule tells objects apart by, if it is a str or an int, wherever it is kept.
  static std::string label_of(PyObject* object, const TypePlan& plan) {
    const std::string& label = *plan.facets.label;
    for (const Member& member : plan.members)
      if (label == member.name) return words_of(field_at<PyObject*>(object, member.offset));
    if (!plan.has_attributes) return {};
    const Attributes attributes = attributes_of(object, plan.type);
    const SharedNames names = shared_names(plan.type);
    for (std::size_t i = 0; i < (attributes.values != nullptr ? std::min(attributes.capacity, names.count) : 0); ++i)
      if (names[i] != nullptr && PyUnicode_CompareWithASCIIString(names[i], label.c_str()) == 0)
        return words_of(attributes.values[i]);
    const bool has_dict = attributes.dict != nullptr && *attributes.dict != nullptr && PyDict_Check(*attributes.dict);
    return has_dict ? words_of(entry_of(*attributes.dict, label.c_str())) : std::string{};
  }
  static std::string words_of(PyObject* value) {
    if (value == nullptr) return {};
    return PyUnicode_Check(value) ? text_of(value, kLongestValue) : number_text(value);
  }

  static std::string module_name(PyObject* module) {
    PyObject* dict = PyModule_GetDict(module);
    return dict != nullptr ? text_of(entry_of(dict, "__name__"), kLongestName) : std::string{};
  }

  static std::string value_of(PyObject* object) {
    if (PyUnicode_CheckExact(object)) return "'" + text_of(object, kLongestValue) + "'";
    if (PyBytes_CheckExact(object)) {
      const auto size = static_cast<std::size_t>(std::min<Py_ssize_t>(PyBytes_GET_SIZE(object), kLongestValue));
      return cpython::bytes_literal({PyBytes_AS_STRING(object), size});
    }
    if (PyFloat_CheckExact(object)) return cpython::float_literal(PyFloat_AS_DOUBLE(object));
    return number_text(object);
  }

  static std::string number_text(PyObject* object) {
    if (!PyLong_Check(object)) return {};
    char digits[32];
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow != 0) return {};
    return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
  }

  const heap::AddressSet& found_;
  Values values_;
  heap::BlockCount blocks_;
  heap::ContentHash hash_{heap::random_key()};
  HeapAllocations& allocations_;
  ObjectWords words_;
  ObjectEdges<Recorder> edges_;
};

}  // namespace plimsoll::python
