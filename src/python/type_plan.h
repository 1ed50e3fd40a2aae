// python/type_plan.h: what there is to know of a class before its objects are looked at, worked out once.
#pragma once

#include <Python.h>

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "heap/object_size.h"
#include "heap/own_memory.h"
#include "heap/type_rules.h"

namespace plimsoll::python {

// How an object shows what it holds.
enum class Shape : std::uint8_t {
  kLeaf,      // holds nothing but its class
  kTuple,     // exactly a tuple
  kList,      // exactly a list
  kDict,      // exactly a dict
  kDictLike,  // of a subclass of dict, and frozendict
  kCode,
  kClass,
  kModule,
  kWeakref,
  kInstance,  // of a class written in Python that has attributes, and nothing else
  kOther,     // tp_traverse, attributes and tp_members tell
};

// How its size is found.
enum class SizeRule : std::uint8_t {
  kBasic,   // tp_basicsize and tp_itemsize
  kText,    // str and its subclasses
  kList,    // exactly a list
  kDict,    // of dict and its subclasses
  kInt,     // of int and its subclasses
  kMethod,  // by the class's own __sizeof__, if that is known to run nothing
};

// Whose contents are told apart.
enum class Content : std::uint8_t { kNone, kBytes, kText };

// A field of objects that is a reference: tp_members names it, or heap/own_memory.h.
struct Member {
  Py_ssize_t offset;
  const char* name;
  Py_ssize_t flag = 0;  // where a byte is that is 0 in objects without it; 0: all have it
};

// The plan of a class.
struct TypePlan {
  PyTypeObject* type = nullptr;
  std::uint32_t number = 0;
  Shape shape = Shape::kOther;
  SizeRule size_rule = SizeRule::kBasic;
  Content content = Content::kNone;  // of exactly bytes or str
  bool has_attributes = false;
  bool is_one_block = false;  // its objects, or most of them, have nothing beside themselves
  bool has_name = false;      // its objects have one, whether values are shown or not
  traverseproc traverse = nullptr;
  PyCFunction size_method = nullptr;
  heap::OwnMemory own_memory = heap::OwnMemory::kNone;  // of the class whose method that is
  std::size_t header = 0;                               // bytes in front of the object in its block
  std::size_t fixed_size = 0;                           // of all its objects, in blocks; 0: they differ
  std::size_t sentinel = 0;  // bytes behind it that nobody uses: PyType_GenericAlloc makes them
  std::vector<Member> members;
  std::vector<Member> hidden;  // that nothing else shows
  heap::Facets facets;
};

// The plans of all classes met so far.
class TypePlans {
 public:
  // `python_traverse`: the tp_traverse of classes written in Python, if it is known.
  explicit TypePlans(std::vector<heap::TypeRule> rules, traverseproc python_traverse = nullptr)
      : rules_(std::move(rules)), python_traverse_(python_traverse) {}

  // Of an object's class. Looks only: in particular no attribute is looked up by Python's rules.
  TypePlan& of(PyTypeObject* type) {
    TypePlan*& recent = recent_[(reinterpret_cast<std::uintptr_t>(type) >> 4U) % recent_.size()];
    if (recent != nullptr && recent->type == type) return *recent;
    const auto found = by_type_.find(type);
    recent = found != by_type_.end() ? found->second : &add(type);
    return *recent;
  }
  [[nodiscard]] const std::deque<TypePlan>& all() const { return plans_; }

 private:
  TypePlan& add(PyTypeObject* type);
  bool has_attributes_only(PyTypeObject* type) const;

  std::vector<heap::TypeRule> rules_;
  traverseproc python_traverse_;
  std::deque<TypePlan> plans_;
  boost::unordered_flat_map<PyTypeObject*, TypePlan*> by_type_;
  std::array<TypePlan*, 256> recent_{};  // by their classes' addresses, which most objects of a heap are of
};

// Bytes of memory that the object takes, each of its blocks rounded up as the allocator does: with what stands in
// front of it, and with buffers that are its own (list items, dict tables, ...). Calls no Python code.
heap::ObjectSize size_of(PyObject* object, const TypePlan& plan);
// Likewise of an object that has nothing beside itself; 0 if it has, or may have.
std::uint64_t block_by_rule(PyObject* object, const TypePlan& plan);
inline std::uint64_t one_block(PyObject* object, const TypePlan& plan) {
  if (plan.fixed_size != 0) return plan.fixed_size;
  return plan.is_one_block ? block_by_rule(object, plan) : 0;
}

// References that it keeps beside itself and that tp_traverse does not show.
heap::HiddenElements hidden_elements_of(PyObject* object, const TypePlan& plan);

// "collections.OrderedDict", "app.Outer.Inner", "list".
std::string name_of(PyTypeObject* type);

// UTF-8 of at most `most` characters of a str; no copy is left in the object.
std::string text_of(PyObject* text, Py_ssize_t most);

// What a dict has under an ASCII name, borrowed, or null. Neither hashes nor compares by Python's rules.
PyObject* entry_of(PyObject* dict, const char* name);

}  // namespace plimsoll::python
