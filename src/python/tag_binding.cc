// python/tag_binding.cc: plimsoll.tag's native half.
//
// The tags that hold are the value of one context variable: a TagSet, which names a row of the TagRegistry. Entering a
// Tag makes a TagSet of the current one and its own words; leaving it sets the one before. So asyncio's tasks, threads
// and greenlets have tags of their own without anything being done when they are switched, and a handler finds them by
// reading (capture/tags.h). Types are made in the C API's own terms, as handlers must know where their members are.
#include "python/tag_binding.h"

#include <Python.h>
#include <nanobind/nanobind.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <new>
#include <string>

#include "memory/local.h"
#include "profile/plim_format.h"
#include "python/bindings.h"
#include "python/text.h"

namespace nb = nanobind;

namespace plimsoll::python {
namespace {

using capture::Tags;

constexpr std::size_t kLongestText = 1000;  // bytes of a name or a value; the rest is left out

// The tags that hold in a context. Immutable but for `has_ended`.
struct TagSet {
  PyObject_HEAD capture::TagNumber number;
  const std::shared_ptr<const Tags>* tags;
  TagSet* outer;                // what held before; a strong reference or null
  std::uint64_t maker;          // the serial of the Tag that was entered
  std::atomic<bool> has_ended;  // it was left while an inner one held: not to be gone back to
};

// What a program enters and leaves.
struct Tag {
  PyObject_HEAD const std::shared_ptr<const Tags>* tags;
  std::uint64_t serial;
};

// What all tags have in common. Made once, never destroyed: TagSets may outlive the module.
struct TagState {
  capture::TagRegistry registry;
  PyTypeObject* set_type = nullptr;
  PyObject* variable = nullptr;
  std::atomic<std::uint64_t> serials{0};
};

TagState& state() {
  static TagState* const made = new TagState;
  return *made;
}

// Calls what returns a new reference. No C++ exception may leave a function that CPython has called.
template <typename Body>
PyObject* guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}

// ---- sets ----

PyObject* new_set(std::shared_ptr<const Tags> tags, TagSet* outer, std::uint64_t maker) {
  auto held = std::make_unique<const std::shared_ptr<const Tags>>(tags);
  const capture::TagNumber number = state().registry.add(std::move(tags));
  TagSet* self = PyObject_New(TagSet, state().set_type);
  if (self == nullptr) {
    state().registry.died(number);
    return nullptr;
  }
  self->number = number;
  self->tags = held.release();
  self->outer = outer;
  self->maker = maker;
  new (&self->has_ended) std::atomic<bool>(false);
  return reinterpret_cast<PyObject*>(self);
}

void dealloc_set(PyObject* object) {
  auto* self = reinterpret_cast<TagSet*>(object);
  PyTypeObject* type = Py_TYPE(object);
  state().registry.died(self->number);
  delete self->tags;
  TagSet* outer = self->outer;
  PyObject_Free(object);
  Py_DECREF(type);
  // A chain as long as a recursion was deep is taken apart in a loop, not in another recursion.
  while (outer != nullptr) {
    TagSet* next = Py_REFCNT(outer) == 1 ? std::exchange(outer->outer, nullptr) : nullptr;
    Py_DECREF(reinterpret_cast<PyObject*>(outer));
    outer = next;
  }
}

// "<tags request=GET user=7>"
PyObject* repr_of_set(PyObject* object) {
  return guarded([&] {
    std::string text = "<tags";
    for (const auto& [name, value] : **reinterpret_cast<TagSet*>(object)->tags) text += " " + name + "=" + value;
    text += ">";
    return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  });
}

// What holds now, as a new reference; null if nothing does, or with an exception set.
TagSet* current_set() {
  PyObject* value = nullptr;
  if (PyContextVar_Get(state().variable, nullptr, &value) != 0 || value == nullptr) return nullptr;
  if (Py_TYPE(value) == state().set_type) return reinterpret_cast<TagSet*>(value);
  Py_DECREF(value);
  return nullptr;
}

// False with an exception set.
bool set_current(PyObject* value) {
  PyObject* token = PyContextVar_Set(state().variable, value);
  Py_XDECREF(token);
  return token != nullptr;
}

// `inner` in front of `outer`: of two tags of one name the inner one holds.
std::shared_ptr<const Tags> merged(const Tags& outer, const Tags& inner) {
  auto all = std::make_shared<Tags>(inner);
  for (const auto& tag : outer) {
    const bool is_hidden =
        std::any_of(inner.begin(), inner.end(), [&](const auto& other) { return other.first == tag.first; });
    if (!is_hidden && all->size() < profile::plim::kMostTags) all->push_back(tag);
  }
  std::sort(all->begin(), all->end());
  return all;
}

// ---- tags ----

// The text as UTF-8, at most kLongestText bytes of it. False with an exception set.
bool tag_text(PyObject* object, std::string& out) {
  const nb::object text = PyUnicode_CheckExact(object) ? nb::borrow(object) : nb::steal(PyObject_Str(object));
  if (!text.is_valid() || !utf8_of(text.ptr(), "backslashreplace", out)) return false;
  if (out.size() <= kLongestText) return true;
  std::size_t end = kLongestText;
  while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xc0U) == 0x80U) --end;
  out.resize(end);
  return true;
}

// False with an exception set.
bool words_of(PyObject* kwargs, Tags& out) {
  PyObject* name = nullptr;
  PyObject* value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(kwargs, &at, &name, &value) != 0;) {
    auto& tag = out.emplace_back();
    if (!tag_text(name, tag.first) || !tag_text(value, tag.second)) return false;
  }
  std::sort(out.begin(), out.end());
  if (out.size() <= profile::plim::kMostTags) return true;
  PyErr_SetString(PyExc_ValueError, "at most 64 tags can hold at one time");
  return false;
}

PyObject* new_tag(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  if (PyTuple_GET_SIZE(args) != 0 || kwargs == nullptr || PyDict_GET_SIZE(kwargs) == 0) {
    PyErr_SetString(PyExc_TypeError, "a tag has a name and a value: tag(request=\"GET /\")");
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    auto words = std::make_shared<Tags>();
    if (!words_of(kwargs, *words)) return nullptr;
    auto held = std::make_unique<const std::shared_ptr<const Tags>>(std::move(words));
    auto* self = reinterpret_cast<Tag*>(type->tp_alloc(type, 0));
    if (self == nullptr) return nullptr;
    self->tags = held.release();
    self->serial = state().serials.fetch_add(1, std::memory_order_relaxed) + 1;
    return reinterpret_cast<PyObject*>(self);
  });
}

void dealloc_tag(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  delete reinterpret_cast<Tag*>(object)->tags;
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* enter(PyObject* object, PyObject*) {
  auto* self = reinterpret_cast<Tag*>(object);
  TagSet* outer = current_set();
  if (outer == nullptr && PyErr_Occurred() != nullptr) return nullptr;
  PyObject* set = guarded([&] {
    return new_set(outer != nullptr ? merged(**outer->tags, **self->tags) : *self->tags, outer, self->serial);
  });
  if (set == nullptr) {
    Py_XDECREF(reinterpret_cast<PyObject*>(outer));
    return nullptr;
  }
  const bool is_set = set_current(set);
  Py_DECREF(set);
  if (!is_set) return nullptr;
  Py_INCREF(object);
  return object;
}

// Sets what held before `left`.
bool go_back(const TagSet* left) {
  TagSet* to = left->outer;
  while (to != nullptr && to->has_ended.load(std::memory_order_relaxed)) to = to->outer;
  return set_current(to != nullptr ? reinterpret_cast<PyObject*>(to) : Py_None);
}

PyObject* leave(PyObject* object, PyObject*) {
  const std::uint64_t serial = reinterpret_cast<Tag*>(object)->serial;
  TagSet* current = current_set();
  bool is_done = current != nullptr || PyErr_Occurred() == nullptr;
  if (current != nullptr && current->maker == serial) {
    is_done = go_back(current);
  } else {
    // A generator or an asynchronous one was left elsewhere than it was entered. In another context there is nothing to
    // do; and in this one, an inner tag goes on.
    TagSet* set = current;
    while (set != nullptr && set->maker != serial) set = set->outer;
    if (set != nullptr) set->has_ended.store(true, std::memory_order_relaxed);
  }
  Py_XDECREF(reinterpret_cast<PyObject*>(current));
  if (!is_done) return nullptr;
  Py_RETURN_NONE;
}

// ---- types ----

PyObject* make_set_type() {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc_set)},
                         {Py_tp_repr, reinterpret_cast<void*>(repr_of_set)},
                         {0, nullptr}};
  PyType_Spec spec{"plimsoll._core.TagSet", sizeof(TagSet), 0, Py_TPFLAGS_DEFAULT, slots};
  return PyType_FromSpec(&spec);
}

PyObject* make_tag_type() {
  static PyMethodDef methods[] = {{"__enter__", enter, METH_NOARGS, "__enter__(self)"},
                                  {"__exit__", leave, METH_VARARGS, "__exit__(self, *exception)"},
                                  {nullptr, nullptr, 0, nullptr}};
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(new_tag)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_tag)},
                         {Py_tp_methods, methods},
                         {Py_tp_doc, const_cast<char*>("Words for what a program does; see plimsoll.tag.")},
                         {0, nullptr}};
  PyType_Spec spec{"plimsoll._core.Tag", sizeof(Tag), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  return PyType_FromSpec(&spec);
}

// ---- finding them ----

// The type of the root node of the current context's trie; null if it cannot be read.
Address type_of_root(const cpython::Layout& layout) {
  const memory::LocalReader memory;
  Address at = address_of(PyThreadState_Get());
  for (const std::uint32_t field :
       {layout.tstate.context, layout.context.variables, layout.context.root, layout.object.type})
    if (!memory::load_address(memory, offset_by(at, field), at) || is_null(at)) return {};
  return at;
}

// Whether the source finds the tags that `expected` names in the calling thread.
bool finds(const cpython::Layout& layout, const capture::TagSource& source, capture::TagNumber expected) {
  return capture::tags_of(memory::LocalReader{}, layout, source, address_of(PyThreadState_Get())) == expected;
}

// In a context of our own: learns the types of nodes, and proves that tags are found. False if not, perhaps with an
// exception set.
bool learn(const cpython::Layout& layout, capture::TagSource& source) {
  constexpr int kVariables = 100;  // a root with less than 17 children of 32 would be a wonder
  const nb::object set = nb::steal(new_set(std::make_shared<Tags>(), nullptr, 0));
  if (!set.is_valid() || !set_current(set.ptr())) return false;
  source.variable.bitmap_node = type_of_root(layout);
  const capture::TagNumber number = reinterpret_cast<TagSet*>(set.ptr())->number;
  if (!finds(layout, source, number)) return false;
  for (int i = 0; i < kVariables; ++i) {
    // Names of their own, as addresses alone may be too regular to spread over the branches.
    const std::string name = "plimsoll.probe." + std::to_string(i);
    const nb::object other = nb::steal(PyContextVar_New(name.c_str(), nullptr));
    const nb::object token = nb::steal(other.is_valid() ? PyContextVar_Set(other.ptr(), Py_None) : nullptr);
    if (!token.is_valid()) return false;
  }
  source.variable.array_node = type_of_root(layout);
  if (source.variable.array_node == source.variable.bitmap_node || !finds(layout, source, number)) return false;
  return set_current(Py_None) && finds(layout, source, 0);
}

}  // namespace

capture::TagSource find_tag_source(const cpython::Layout& layout) {
  if (layout.tstate.context == cpython::kNoField) return {};
  capture::TagSource source;
  source.registry = &state().registry;
  source.variable.variable = address_of(state().variable);
  source.variable.hash = cpython::trie_hash(PyObject_Hash(state().variable));
  source.set_type = address_of(state().set_type);
  source.number_in_set = offsetof(TagSet, number);
  const nb::object context = nb::steal(PyContext_New());
  const bool is_entered = context.is_valid() && PyContext_Enter(context.ptr()) == 0;
  const bool is_proven = is_entered && learn(layout, source);
  if (PyErr_Occurred() != nullptr) PyErr_Clear();
  if (is_entered && PyContext_Exit(context.ptr()) != 0) PyErr_Clear();
  return is_proven ? source : capture::TagSource{};
}

void bind_tags(nb::module_& module) {
  TagState& tags = state();
  tags.set_type = reinterpret_cast<PyTypeObject*>(make_set_type());
  tags.variable = PyContextVar_New("plimsoll.tags", nullptr);
  const nb::object tag_type = nb::steal(make_tag_type());
  if (tags.set_type == nullptr || tags.variable == nullptr || !tag_type.is_valid()) throw nb::python_error();
  module.attr("Tag") = tag_type;
  ::pthread_atfork([] { state().registry.hold(); }, [] { state().registry.release(); },
                   [] { state().registry.release(); });
}

}  // namespace plimsoll::python
