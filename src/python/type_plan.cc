#include "python/type_plan.h"

#include <structmember.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "cpython/code_object.h"
#include "python/object_compat.h"

namespace plimsoll::python {
namespace {

// Types of tp_members that are references: T_OBJECT and T_OBJECT_EX, whose names differ between versions.
constexpr int kObjectMember = 6, kObjectMemberEx = 16;

std::vector<Member> members_of(PyTypeObject* type) {
  std::vector<Member> members;
  PyObject* order = type->tp_mro;
  for (Py_ssize_t i = 0; order != nullptr && i < PyTuple_GET_SIZE(order); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(order, i));
    if (base->tp_members == nullptr) continue;
    for (const PyMemberDef* member = base->tp_members; member->name != nullptr; ++member) {
      const bool is_inside = member->offset > 0 && member->offset + 8 <= type->tp_basicsize;
      const bool is_known = std::any_of(members.begin(), members.end(),
                                        [&](const Member& known) { return known.offset == member->offset; });
      if ((member->type == kObjectMember || member->type == kObjectMemberEx) && is_inside && !is_known)
        members.push_back({member->offset, member->name});
    }
  }
  return members;
}

bool is_subtype(PyTypeObject* type, PyTypeObject* base) { return PyType_IsSubtype(type, base) != 0; }

Shape shape_of(PyTypeObject* type) {
  if (type == &PyTuple_Type) return Shape::kTuple;
  if (type == &PyList_Type) return Shape::kList;
  if (type == &PyDict_Type) return Shape::kDict;
  if (type == &PyCode_Type) return Shape::kCode;
  if (is_subtype(type, &PyDict_Type) || is_frozen_dict(type)) return Shape::kDictLike;
  if (is_subtype(type, &PyType_Type)) return Shape::kClass;
  if (is_subtype(type, &PyModule_Type)) return Shape::kModule;
  if (is_subtype(type, &_PyWeakref_RefType) || type == &_PyWeakref_ProxyType || type == &_PyWeakref_CallableProxyType)
    return Shape::kWeakref;
  return Shape::kOther;
}

// Classes whose __sizeof__ only reads what is in the object: those of Python's own, and NumPy's. Any other may call
// Python, as Cython's do for a property, and then other threads run in mid-walk, while references are borrowed.
constexpr std::array<std::string_view, 35> kReadOnlySizes{"object",
                                                          "int",
                                                          "str",
                                                          "bytearray",
                                                          "list",
                                                          "dict",
                                                          "frozendict",
                                                          "set",
                                                          "frozenset",
                                                          "type",
                                                          "code",
                                                          "frame",
                                                          "generator",
                                                          "coroutine",
                                                          "async_generator",
                                                          "array.array",
                                                          "collections.deque",
                                                          "collections.OrderedDict",
                                                          "decimal.Decimal",
                                                          "itertools.combinations",
                                                          "itertools.combinations_with_replacement",
                                                          "itertools.permutations",
                                                          "itertools.product",
                                                          "numpy.ndarray",
                                                          "xml.etree.ElementTree.Element",
                                                          "StgDict",
                                                          "_ctypes.CType_Type",
                                                          "_io.BufferedRandom",
                                                          "_io.BufferedReader",
                                                          "_io.BufferedWriter",
                                                          "_io.BytesIO",
                                                          "_pickle.Pickler",
                                                          "_pickle.Unpickler",
                                                          "_queue.SimpleQueue",
                                                          "_struct.Struct"};

// The C function behind a method of that class without arguments; null if it is none.
PyCFunction c_method(PyObject* method, PyTypeObject* of) {
  if (method == nullptr || Py_TYPE(method) != &PyMethodDescr_Type || PyDescr_TYPE(method) != of) return nullptr;
  const PyMethodDef* definition = reinterpret_cast<PyMethodDescrObject*>(method)->d_method;
  return (definition->ml_flags & METH_NOARGS) != 0 ? definition->ml_meth : nullptr;
}

// The first __sizeof__ of the bases that is known to be harmless. One in Python may run anything, and may count what
// others own; then what is below it in the order of bases knows the object's own memory.
struct SizeMethod {
  PyCFunction function = nullptr;
  PyTypeObject* of = nullptr;
};
SizeMethod size_method_of(PyTypeObject* type) {
  PyObject* order = type->tp_mro;
  for (Py_ssize_t i = 0; order != nullptr && i < PyTuple_GET_SIZE(order); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(order, i));
    if (std::find(kReadOnlySizes.begin(), kReadOnlySizes.end(), base->tp_name) == kReadOnlySizes.end()) continue;
    if (const PyCFunction function = c_method(entry_of(type_dict(base), "__sizeof__"), base); function != nullptr)
      return {function, base};
  }
  return {};
}

// How much longer an object's head is than with a GIL, where all offsets of heap/own_memory.h are from.
constexpr std::size_t kHeadShift = sizeof(PyObject) - 16;

// In front of the items of a list, in their block: how many there is room for.
constexpr std::size_t kListHead = kIsFreeThreaded ? 8 : 0;

std::vector<Member> hidden_of(PyTypeObject* type, heap::OwnMemory own_memory) {
  std::vector<Member> hidden;
  const auto add = [&](std::span<const heap::HiddenField> fields) {
    for (const heap::HiddenField& each : fields) {
      const heap::HiddenField field = each.behind(kHeadShift);
      hidden.push_back({static_cast<Py_ssize_t>(field.offset), field.name, static_cast<Py_ssize_t>(field.flag)});
    }
  };
  add(heap::hidden_fields(own_memory));
  for (const PyTypeObject* base = type; base != nullptr; base = base->tp_base)
    if ((base->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0)  // a class in Python may be called anything
      add(heap::hidden_fields(base->tp_name, static_cast<std::uint64_t>(base->tp_basicsize) - kHeadShift));
  return hidden;
}

std::size_t block_of(std::size_t bytes) {
  return heap::block_of(bytes, kIsFreeThreaded ? heap::Allocator::kMimalloc : heap::Allocator::kPymalloc);
}

std::size_t items_of(PyObject* object, const TypePlan& plan) {
  if (plan.type->tp_itemsize == 0) return 0;
  const Py_ssize_t count = reinterpret_cast<PyVarObject*>(object)->ob_size;
  return static_cast<std::size_t>(count < 0 ? -count : count) * static_cast<std::size_t>(plan.type->tp_itemsize);
}

// What __sizeof__ says; 0 if it fails.
std::size_t ask(PyObject* object, PyCFunction method) {
  PyObject* answer = method(object, nullptr);
  const Py_ssize_t size = answer != nullptr && PyLong_Check(answer) ? PyLong_AsSsize_t(answer) : 0;
  Py_XDECREF(answer);
  if (PyErr_Occurred() != nullptr) PyErr_Clear();
  return size > 0 ? static_cast<std::size_t>(size) : 0;
}

struct Blocks {
  std::size_t own = 0;   // the block of the object, without what stands in front of it
  std::size_t rest = 0;  // a buffer
};

Blocks text_blocks(PyObject* text, std::size_t basic) {
  const auto length = static_cast<std::size_t>(PyUnicode_GET_LENGTH(text));
  const auto* ascii = reinterpret_cast<PyASCIIObject*>(text);
  if (ascii->state.compact == 0) return {basic, (length + 1) * ascii->state.kind};  // of a subclass: its own buffer
  if (ascii->state.ascii != 0) return {sizeof(PyASCIIObject) + length + 1, 0};
  const auto* compact = reinterpret_cast<PyCompactUnicodeObject*>(text);
  const std::size_t width = ascii->state.kind;
  const std::size_t cached = compact->utf8 != nullptr ? static_cast<std::size_t>(compact->utf8_length) + 1 : 0;
  return {sizeof(PyCompactUnicodeObject) + (length + 1) * width, cached};
}

Blocks asked_blocks(PyObject* object, const TypePlan& plan) {
  const auto basic = static_cast<std::size_t>(plan.type->tp_basicsize);
  const std::size_t all = ask(object, plan.size_method);
  if (plan.shape == Shape::kClass) {
    // type.__sizeof__ counts the class and its shared names, but not the members behind it, and says for a built-in
    // class, which is no block at all, what is right for one.
    const std::size_t items = items_of(object, plan);
    return {basic + items, all > basic ? all - basic : 0};
  }
  if (plan.own_memory == heap::OwnMemory::kBytesIO) return {basic, 0};  // which counts what its bytes object has
  if (plan.type->tp_itemsize != 0) return {all, 0};
  if (plan.shape == Shape::kDict && has_embedded_values(object)) return {basic, 0};
  return all > basic ? Blocks{basic, all - basic} : Blocks{basic, 0};
}

Blocks blocks_of(PyObject* object, const TypePlan& plan) {
  const auto basic = static_cast<std::size_t>(plan.type->tp_basicsize);
  switch (plan.size_rule) {
    case SizeRule::kBasic: return {basic + items_of(object, plan), 0};
    case SizeRule::kList: {
      const auto allocated = static_cast<std::size_t>(reinterpret_cast<PyListObject*>(object)->allocated);
      return {basic, allocated == 0 ? 0 : kListHead + allocated * 8};
    }
    case SizeRule::kText: return text_blocks(object, basic);
    case SizeRule::kInt: return {int_bytes(object), 0};
    case SizeRule::kDict:
      // Empty dicts share one.
      if (OwnTable table; find_own_table(object, table))
        return {basic, table.references == 1 ? static_cast<std::size_t>(table.bytes) : 0};
      break;
    case SizeRule::kMethod: break;
  }
  return asked_blocks(object, plan);
}

// Of the class, and of what it is derived from.
std::vector<std::string> names_along_bases(PyTypeObject* type) {
  std::vector<std::string> names;
  PyObject* order = type->tp_mro;
  for (Py_ssize_t i = 0; order != nullptr && i < PyTuple_GET_SIZE(order); ++i)
    names.push_back(name_of(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(order, i))));
  return names;
}

}  // namespace

TypePlan& TypePlans::add(PyTypeObject* type) {
  TypePlan& plan = plans_.emplace_back();
  by_type_.emplace(type, &plan);
  plan.type = type;
  plan.number = static_cast<std::uint32_t>(plans_.size() - 1);
  plan.shape = shape_of(type);
  const bool is_collected = (type->tp_flags & Py_TPFLAGS_HAVE_GC) != 0;
  const bool is_heap_type = (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0;
  plan.traverse = is_collected ? type->tp_traverse : nullptr;
  plan.has_attributes = type->tp_dictoffset != 0 || (type->tp_flags & kManagedDictFlag) != 0;
  plan.header = (is_collected ? kCollectorHeader : 0) + ((type->tp_flags & kPreHeaderFlags) != 0 ? 16 : 0);
  plan.sentinel = is_heap_type || type == &PyType_Type ? static_cast<std::size_t>(type->tp_itemsize) : 0;
  plan.members = members_of(type);
  plan.facets = heap::facets_of(names_along_bases(type), rules_);
  const SizeMethod method = size_method_of(type);
  plan.size_method = method.function;
  if (method.of != nullptr && method.of != &PyBaseObject_Type) {
    plan.size_rule = SizeRule::kMethod;
    plan.own_memory =
        heap::own_memory_of(method.of->tp_name, static_cast<std::uint64_t>(method.of->tp_basicsize) - kHeadShift);
  }
  plan.hidden = hidden_of(type, plan.own_memory);
  if (is_subtype(type, &PyUnicode_Type)) plan.size_rule = SizeRule::kText;
  if (plan.own_memory == heap::OwnMemory::kList) plan.size_rule = SizeRule::kList;
  if (method.of == &PyDict_Type && type->tp_itemsize == 0) plan.size_rule = SizeRule::kDict;
  if (method.of == &PyLong_Type) plan.size_rule = SizeRule::kInt;
  const bool is_read =
      plan.size_rule == SizeRule::kBasic || plan.size_rule == SizeRule::kText || plan.size_rule == SizeRule::kInt;
  plan.is_one_block =
      is_read && !plan.has_attributes && plan.own_memory == heap::OwnMemory::kNone && !plan.facets.native;
  if (plan.is_one_block && plan.size_rule == SizeRule::kBasic && type->tp_itemsize == 0)
    plan.fixed_size = block_of(plan.header + static_cast<std::size_t>(type->tp_basicsize) + plan.sentinel);
  if (type == &PyBytes_Type) plan.content = Content::kBytes;
  if (type == &PyUnicode_Type) plan.content = Content::kText;
  plan.has_name = plan.shape == Shape::kClass || plan.shape == Shape::kCode || plan.shape == Shape::kModule ||
                  type == &PyFunction_Type || type == &PyCFunction_Type || plan.facets.label.has_value();
  const bool has_extras =
      plan.traverse != nullptr || plan.has_attributes || !plan.members.empty() || !plan.hidden.empty();
  if (plan.shape == Shape::kOther && !has_extras) plan.shape = Shape::kLeaf;
  const bool is_plain = plan.members.empty() && plan.hidden.empty() && plan.own_memory == heap::OwnMemory::kNone;
  if (plan.shape == Shape::kOther && is_plain && has_attributes_only(type)) plan.shape = Shape::kInstance;
  return plan;
}

// Whether what tp_traverse shows is the attributes and the class: it is that of Python's own classes all along the
// bases, and there are no slots, which are members.
bool TypePlans::has_attributes_only(PyTypeObject* type) const {
  if (python_traverse_ == nullptr || (type->tp_flags & kManagedDictFlag) == 0) return false;
  PyObject* order = type->tp_mro;
  if (order == nullptr || (type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(order); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(order, i));
    // (A base without attributes of its own, like typing.Generic, is no object of the collector's.)
    const bool is_bare = base->tp_traverse == nullptr && base->tp_basicsize == PyBaseObject_Type.tp_basicsize;
    if (base->tp_traverse != python_traverse_ && !is_bare) return false;
  }
  return type->tp_traverse == python_traverse_ && type->tp_itemsize == 0;
}

namespace {

// What objects of the program say of themselves.
struct OwnProcess {
  template <typename Number>
  [[nodiscard]] Number number(Address at, std::uint64_t offset) const {
    return field_at<Number>(pointer_to<void>(at), static_cast<std::ptrdiff_t>(offset));
  }
  [[nodiscard]] std::uint64_t word(Address at, std::uint64_t offset) const { return number<std::uint64_t>(at, offset); }
};

heap::NativeExtent native_memory_of(PyObject* object, const TypePlan& plan) {
  if (!plan.facets.native) return {};
  const auto at = [&](auto type, std::uint64_t offset) {
    return field_at<decltype(type)>(object, static_cast<std::ptrdiff_t>(offset));
  };
  return heap::native_extent(
      *plan.facets.native, address_of(object), sizeof(PyObject), static_cast<std::uint64_t>(plan.type->tp_basicsize),
      [&](std::uint64_t offset) { return at(std::uint64_t{}, offset); },
      [&](std::uint64_t offset) { return at(std::uint32_t{}, offset); });
}

}  // namespace

std::uint64_t block_by_rule(PyObject* object, const TypePlan& plan) {
  const Blocks blocks = blocks_of(object, plan);
  return blocks.rest == 0 ? block_of(plan.header + blocks.own + plan.sentinel) : 0;
}

heap::ObjectSize size_of(PyObject* object, const TypePlan& plan) {
  heap::ObjectSize size;
  const Blocks blocks = blocks_of(object, plan);
  std::size_t own = plan.header + blocks.own + plan.sentinel;
  if (plan.has_attributes && plan.shape != Shape::kClass) {
    const Attributes attributes = attributes_of(object, plan.type);
    own += attributes.inline_bytes;
    size.add_block(block_of(attributes.block_bytes));
  }
  size.own = block_of(own);
  heap::add_own(size, plan.own_memory, block_of(blocks.rest));
  size.block = heap::own_extent(plan.own_memory, OwnProcess{}, address_of(object), kHeadShift, blocks.rest);
  size.native = native_memory_of(object, plan);
  size.large += block_of(size.native.size);
  return size;
}

heap::HiddenElements hidden_elements_of(PyObject* object, const TypePlan& plan) {
  return heap::hidden_elements(plan.own_memory, OwnProcess{}, address_of(object), kHeadShift);
}

PyObject* entry_of(PyObject* dict, const char* name) {
  if (dict == nullptr || !PyDict_Check(dict)) return nullptr;
  Py_ssize_t position = 0;
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  while (PyDict_Next(dict, &position, &key, &value) != 0)
    if (PyUnicode_Check(key) && PyUnicode_CompareWithASCIIString(key, name) == 0) return value;
  return nullptr;
}

std::string text_of(PyObject* text, Py_ssize_t most) {
  std::string out;
  if (text == nullptr || !PyUnicode_Check(text) || PyUnicode_IS_READY(text) == 0) return out;
  const auto kind = PyUnicode_KIND(text);
  const void* data = PyUnicode_DATA(text);
  const Py_ssize_t length = std::min<Py_ssize_t>(PyUnicode_GET_LENGTH(text), most);
  // As nearly all names are, of which a snapshot of a small heap mostly consists.
  if (PyUnicode_IS_ASCII(text)) return {static_cast<const char*>(data), static_cast<std::size_t>(length)};
  for (Py_ssize_t i = 0; i < length; ++i) append_utf8(out, PyUnicode_READ(kind, data, i));
  return out;
}

std::string name_of(PyTypeObject* type) {
  constexpr Py_ssize_t kLongest = 200;
  std::string name = type->tp_name != nullptr ? type->tp_name : "?";
  if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0) {
    const std::string qualified = text_of(reinterpret_cast<PyHeapTypeObject*>(type)->ht_qualname, kLongest);
    const std::string module = text_of(entry_of(type_dict(type), "__module__"), kLongest);
    if (!qualified.empty()) name = module.empty() ? qualified : module + "." + qualified;
  }
  return name.starts_with("builtins.") ? name.substr(9) : name;
}

}  // namespace plimsoll::python
