// python/object_edges.h: all that an object holds, from what it shows the garbage collector and from what it does not.
//
// A Sink takes the edges: edge(kind, object), named(object, name), type(), weak(object); name_space(dict) says that a
// dict's keys are names; has_names(dict) tells it again. kTellsNames: whether the sink cares how an edge is named;
// finding out costs more than finding the edge.
#pragma once

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "heap/snapshot.h"
#include "python/object_compat.h"
#include "python/type_plan.h"

namespace plimsoll::python {

// Shows a Sink what objects hold.
template <typename Sink>
class ObjectEdges {
 public:
  ObjectEdges(TypePlans& plans, Sink& sink) : plans_(plans), sink_(sink) {}

  void visit(PyObject* object, const TypePlan& plan) {
    switch (plan.shape) {
      case Shape::kLeaf: return;
      case Shape::kTuple:
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) element(PyTuple_GET_ITEM(object, i));
        return;
      case Shape::kList:
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(object); ++i) element(PyList_GET_ITEM(object, i));
        return;
      case Shape::kDict: return items(object);
      case Shape::kCode:
        return visit_code(reinterpret_cast<PyCodeObject*>(object),
                          [&](const char* name, PyObject* held) { this->named(held, name); });
      case Shape::kDictLike: return dict_like(object, plan);
      case Shape::kClass: return class_object(object, plan);
      case Shape::kModule: sink_.name_space(PyModule_GetDict(object)); break;
      case Shape::kWeakref: referent(object); break;
      case Shape::kInstance:
        if (instance(object, plan)) return;
        break;
      case Shape::kOther: break;
    }
    traversed(object, plan);
  }

 private:
  void element(PyObject* held) {
    if (held != nullptr) sink_.edge(heap::EdgeKind::kElement, held);
  }
  template <typename Name>
  void named(PyObject* held, Name name) {
    if (held != nullptr) sink_.named(held, name);
  }

  void items(PyObject* dict) {
    const bool has_names = Sink::kTellsNames && sink_.has_names(dict);
    bool is_first = true, is_weak = false;
    each_item(dict, [&](PyObject* key, PyObject* value) {
      if (std::exchange(is_first, false) && key == value) is_weak = is_table_of_interned(dict);
      if (is_weak) return sink_.weak(key);
      sink_.edge(heap::EdgeKind::kKey, key);
      if (has_names && PyUnicode_Check(key))
        sink_.named(value, key);
      else
        sink_.edge(heap::EdgeKind::kValue, value);
    });
  }

  // tp_traverse of a dict shows values, and keys only if one of them is no str: items() does that better. What the
  // subclass adds is what its tp_traverse shows beyond that of dict.
  void dict_like(PyObject* object, const TypePlan& plan) {
    const std::vector<PyObject*> of_dict = collect(object, &PyDict_Type);
    const std::vector<PyObject*> all = collect(object, plan.type);
    shown_.clear();
    std::set_difference(all.begin(), all.end(), of_dict.begin(), of_dict.end(), std::back_inserter(shown_));
    tell(object, plan);
    items(object);
  }

  void class_object(PyObject* object, const TypePlan& plan) {
    auto* type = reinterpret_cast<PyTypeObject*>(object);
    sink_.name_space(type_dict(type));
    if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0) {  // which would end the process if it were to be traversed
      named(type_dict(type), "__dict__");
      named(type->tp_mro, "__mro__");
      named(type->tp_bases, "__bases__");
      named(reinterpret_cast<PyObject*>(type->tp_base), "__base__");
      return;
    }
    const SharedNames names = shared_names(type);
    for (std::size_t i = 0; i < names.count; ++i)
      if (names[i] != nullptr) sink_.edge(heap::EdgeKind::kReference, names[i]);
    auto* heap_type = reinterpret_cast<PyHeapTypeObject*>(type);
    named(heap_type->ht_name, "__name__");
    if (heap_type->ht_qualname != heap_type->ht_name) named(heap_type->ht_qualname, "__qualname__");
    named(heap_type->ht_slots, "__slots__");
    named(static_cast<PyObject*>(type->tp_subclasses), "__subclasses__");
    traversed(object, plan);
  }

  // An instance without a dict; false if it has one. What its tp_traverse shows is known: so many calls are saved.
  bool instance(PyObject* object, const TypePlan& plan) {
    const Attributes found = attributes_of(object, plan.type);
    if (found.values == nullptr || (found.dict != nullptr && *found.dict != nullptr)) return false;
    const SharedNames names = shared_names(plan.type);
    const std::size_t count = std::min(found.capacity, names.count);
    bool has_unnamed = false;
    for (std::size_t i = 0; i < count; ++i) {
      if (found.values[i] == nullptr) continue;
      if (!Sink::kTellsNames)
        sink_.edge(heap::EdgeKind::kReference, found.values[i]);
      else if (names[i] != nullptr)
        sink_.named(found.values[i], names[i]);
      else
        has_unnamed = true;
    }
    for (std::size_t i = 0; has_unnamed && i < count; ++i)
      if (found.values[i] != nullptr && names[i] == nullptr) sink_.edge(heap::EdgeKind::kReference, found.values[i]);
    sink_.type();
    return true;
  }

  void referent(PyObject* reference) {
    PyObject* held = reinterpret_cast<PyWeakReference*>(reference)->wr_object;
    if (held != nullptr && held != Py_None) sink_.weak(held);
  }

  // ---- by tp_traverse ----

  static int on_shown(PyObject* held, void* self) {
    static_cast<ObjectEdges*>(self)->shown_.push_back(held);
    return 0;
  }
  static int on_held(PyObject* held, void* self) {
    static_cast<ObjectEdges*>(self)->sink_.edge(heap::EdgeKind::kReference, held);
    return 0;
  }
  static bool is_collected(PyObject* object, PyTypeObject* type) {
    return type->tp_is_gc == nullptr || type->tp_is_gc(object) != 0;
  }

  // In the order of addresses.
  std::vector<PyObject*> collect(PyObject* object, PyTypeObject* as) {
    shown_.clear();
    if (as->tp_traverse != nullptr && is_collected(object, Py_TYPE(object))) as->tp_traverse(object, &on_shown, this);
    std::sort(shown_.begin(), shown_.end());
    return shown_;
  }

  void traversed(PyObject* object, const TypePlan& plan) {
    if constexpr (Sink::kTellsNames) {
      shown_.clear();
      if (plan.traverse != nullptr && is_collected(object, plan.type)) plan.traverse(object, &on_shown, this);
    } else {
      if (plan.traverse != nullptr && is_collected(object, plan.type)) plan.traverse(object, &on_held, this);
      shown_.clear();
    }
    tell(object, plan);
  }

  // Takes one of the objects shown; `next` is where it is likely to be.
  bool take(PyObject* held, std::size_t& next) {
    const auto at =
        std::find(shown_.begin() + static_cast<std::ptrdiff_t>(std::min(next, shown_.size())), shown_.end(), held);
    const auto found = at != shown_.end() ? at : std::find(shown_.begin(), shown_.end(), held);
    if (found == shown_.end()) return false;
    *found = nullptr;
    next = static_cast<std::size_t>(found - shown_.begin()) + 1;
    return true;
  }

  // The objects shown, with what names them: attributes, fields, the class. What has no tp_traverse shows its fields
  // here only.
  void tell(PyObject* object, const TypePlan& plan) {
    const bool shows = plan.traverse != nullptr;
    std::size_t next = 0;
    if (plan.has_attributes) attributes(object, plan, next);
    if (Sink::kTellsNames || !shows)
      for (const Member& member : plan.members) {
        PyObject* held = field_at<PyObject*>(object, member.offset);
        if (held != nullptr && (!shows || take(held, next))) sink_.named(held, member.name);
      }
    for (const Member& field : plan.hidden) {
      if (field.flag != 0 && field_at<std::uint8_t>(object, field.flag) == 0) continue;
      PyObject* held = field_at<PyObject*>(object, field.offset);
      take(held, next);
      named(held, field.name);
    }
    if (plan.own_memory != heap::OwnMemory::kNone) hidden_elements(object, plan);
    bool has_type = false;
    for (PyObject* held : shown_) {
      if (held == nullptr) continue;
      if (Sink::kTellsNames && held == reinterpret_cast<PyObject*>(plan.type) && !has_type) {
        has_type = true;
        sink_.type();
      } else {
        sink_.edge(heap::EdgeKind::kReference, held);
      }
    }
  }

  void hidden_elements(PyObject* object, const TypePlan& plan) {
    const heap::HiddenElements inner = hidden_elements_of(object, plan);
    for (std::uint64_t i = 0; i < inner.count; ++i)
      element(field_at<PyObject*>(pointer_to<void>(inner.first), static_cast<std::ptrdiff_t>(8 * i)));
  }

  void attributes(PyObject* object, const TypePlan& plan, std::size_t& next) {
    const Attributes found = attributes_of(object, plan.type);
    const bool has_dict = found.dict != nullptr && *found.dict != nullptr;
    if (has_dict) sink_.name_space(*found.dict);
    if (!Sink::kTellsNames) return;
    if (has_dict) {
      // In 3.13 and 3.14 up to March 2026 values that such a dict has taken over are shown in its place (gh-130327).
      const bool is_shown = take(*found.dict, next);
      sink_.named(*found.dict, "__dict__");
      for (std::size_t i = 0; !is_shown && found.values != nullptr && i < found.capacity; ++i)
        if (found.values[i] != nullptr) take(found.values[i], next);
      return;
    }
    if (found.values == nullptr) return;
    const SharedNames names = shared_names(plan.type);
    for (std::size_t i = 0; i < std::min(found.capacity, names.count); ++i)
      if (found.values[i] != nullptr && names[i] != nullptr && take(found.values[i], next))
        sink_.named(found.values[i], names[i]);
  }

  TypePlans& plans_;
  Sink& sink_;
  std::vector<PyObject*> shown_;
};

}  // namespace plimsoll::python
