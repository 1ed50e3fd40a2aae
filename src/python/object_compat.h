// python/object_compat.h: what objects look like inside, where that differs between CPython versions and builds. With
// compat.h the only place of this folder where a version may be tested. All of it only looks: no reference is counted,
// nothing is created.
#pragma once

#include <Python.h>
#include <frameobject.h>

#include <array>
#include <cstdint>
#include <functional>
#include <span>

#include "python/compat.h"

namespace plimsoll::python {

template <typename T>
T& field_at(void* base, std::ptrdiff_t offset) {
  return *reinterpret_cast<T*>(static_cast<char*>(base) + offset);
}

// ---- the memory in front of an object ----

// Of a collectable object: the collector's links. Free-threaded builds keep theirs in the object.
inline constexpr std::size_t kCollectorHeader = kIsFreeThreaded ? 0 : 16;

#if PY_VERSION_HEX >= 0x030C0000
inline constexpr unsigned long kPreHeaderFlags = Py_TPFLAGS_PREHEADER;
inline constexpr unsigned long kManagedDictFlag = Py_TPFLAGS_MANAGED_DICT;
#elif PY_VERSION_HEX >= 0x030B0000
inline constexpr unsigned long kPreHeaderFlags = Py_TPFLAGS_MANAGED_DICT;
inline constexpr unsigned long kManagedDictFlag = Py_TPFLAGS_MANAGED_DICT;
#else
inline constexpr unsigned long kPreHeaderFlags = 0;
inline constexpr unsigned long kManagedDictFlag = 0;
#endif
// Attributes follow the object in its own block.
#if PY_VERSION_HEX >= 0x030D0000
inline constexpr unsigned long kInlineValuesFlag = Py_TPFLAGS_INLINE_VALUES;
#else
inline constexpr unsigned long kInlineValuesFlag = 0;
#endif

// ---- references ----

// How many references there are; 0 where that is not known: immortal objects, and all of free-threaded builds, which
// defer or divide the counts.
inline std::uint32_t reference_count(PyObject* object) {
  if (kIsFreeThreaded) return 0;
  constexpr Py_ssize_t kImmortal = Py_ssize_t{1} << 29U;  // the least that any version takes for it
  const Py_ssize_t count = Py_REFCNT(object);
  return count <= 0 || count >= kImmortal ? 0 : static_cast<std::uint32_t>(count);
}

// Whether the collector has the object on a list. In free-threaded builds it has none, and asks the allocator.
inline bool is_on_a_list(PyObject* object) {
  if (kIsFreeThreaded) return true;
  PyTypeObject* type = Py_TYPE(object);
  return PyType_IS_GC(type) && (type->tp_is_gc == nullptr || type->tp_is_gc(object) != 0) &&
         field_at<std::uintptr_t>(object, -static_cast<std::ptrdiff_t>(16)) != 0;
}

// ---- attributes ----

// The attributes of an instance as it keeps them: values that share their names with other instances, or a dict.
struct Attributes {
  PyObject** dict = nullptr;  // where the dict is kept; it may hold null
  PyObject** values = nullptr;
  std::size_t capacity = 0;      // of values
  std::size_t inline_bytes = 0;  // after the object in its block
  std::size_t block_bytes = 0;   // in a block of their own
};

// Names that instances of a class share, up to 3.10 with an own dict an instance.
struct SharedNames {
  PyObject** first = nullptr;
  std::size_t count = 0;
  static constexpr std::size_t kStride = 2;  // name, value
  PyObject* operator[](std::size_t i) const { return first[i * kStride]; }
};

#if PY_VERSION_HEX >= 0x030B0000
inline SharedNames shared_names(PyTypeObject* type) {
  if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0) return {};
  void* keys = reinterpret_cast<PyHeapTypeObject*>(type)->ht_cached_keys;
  if (keys == nullptr) return {};
  // dk_log2_index_bytes, dk_kind, dk_nentries, dk_indices of PyDictKeysObject.
  constexpr std::uint8_t kSplitKeys = 2;
  if (field_at<std::uint8_t>(keys, 10) != kSplitKeys) return {};
  const std::ptrdiff_t entries = 32 + (std::ptrdiff_t{1} << field_at<std::uint8_t>(keys, 9));
  return {&field_at<PyObject*>(keys, entries), static_cast<std::size_t>(field_at<Py_ssize_t>(keys, 24))};
}

// Where the dict of a type without a managed one is, from the start of the object; 0 for none.
inline std::ptrdiff_t dict_offset(PyObject* object, PyTypeObject* type) {
  const Py_ssize_t offset = type->tp_dictoffset;
  if (offset >= 0) return offset;
  const Py_ssize_t items = reinterpret_cast<PyVarObject*>(object)->ob_size;
  const Py_ssize_t size = type->tp_basicsize + (items < 0 ? -items : items) * type->tp_itemsize;
  return (size + 7) / 8 * 8 + offset;
}
#endif

// Where an instance with a managed dict keeps its values, if it does.
#if PY_VERSION_HEX >= 0x030D0000
inline void* values_of(PyObject* object, PyTypeObject* type) { return &field_at<char>(object, type->tp_basicsize); }
#elif PY_VERSION_HEX >= 0x030C0000
// One word: a dict, or the address of values less one.
inline void* values_of(PyObject* object, PyTypeObject*) {
  const auto word = field_at<std::uintptr_t>(object, -24);
  return (word & 1U) != 0 ? reinterpret_cast<void*>(word + 1) : nullptr;
}
#elif PY_VERSION_HEX >= 0x030B0000
inline void* values_of(PyObject* object, PyTypeObject*) { return field_at<void*>(object, -32); }
#else
inline void* values_of(PyObject*, PyTypeObject*) { return nullptr; }
#endif

#if PY_VERSION_HEX >= 0x030D0000
inline Attributes attributes_of(PyObject* object, PyTypeObject* type) {
  Attributes found;
  if ((type->tp_flags & kManagedDictFlag) == 0) {
    if (type->tp_dictoffset != 0) found.dict = &field_at<PyObject*>(object, dict_offset(object, type));
    return found;
  }
  found.dict = &field_at<PyObject*>(object, kIsFreeThreaded ? -8 : -24);
  if ((type->tp_flags & kInlineValuesFlag) == 0) return found;
  // struct _dictvalues: capacity, size, embedded, valid; values; the order in which they were set, a byte each.
  void* values = values_of(object, type);
  const std::size_t capacity = field_at<std::uint8_t>(values, 0);
  found.inline_bytes = 8 + capacity * 8 + (capacity + 7) / 8 * 8;
  if (field_at<std::uint8_t>(values, 3) == 0) return found;
  found.values = &field_at<PyObject*>(values, 8);
  found.capacity = capacity;
  return found;
}
#elif PY_VERSION_HEX >= 0x030B0000
inline Attributes attributes_of(PyObject* object, PyTypeObject* type) {
  Attributes found;
  if ((type->tp_flags & kManagedDictFlag) == 0) {
    if (type->tp_dictoffset != 0) found.dict = &field_at<PyObject*>(object, dict_offset(object, type));
    return found;
  }
  found.values = static_cast<PyObject**>(values_of(object, type));
  if (found.values == nullptr || PY_VERSION_HEX < 0x030C0000) found.dict = &field_at<PyObject*>(object, -24);
  if (found.values == nullptr) return found;
  // In front of the values are their order, their number, and how many bytes that takes. The capacity is that of the
  // shared keys (dk_usable and dk_nentries), which may have shrunk since.
  const std::size_t prefix = field_at<std::uint8_t>(found.values, -1);
  void* keys = reinterpret_cast<PyHeapTypeObject*>(type)->ht_cached_keys;
  found.capacity = static_cast<std::size_t>(field_at<Py_ssize_t>(keys, 16) + field_at<Py_ssize_t>(keys, 24));
  const std::size_t least = prefix > 8 ? prefix - 9 : 0;
  found.block_bytes = prefix + (found.capacity > least ? found.capacity : least) * 8;
  return found;
}
#else
inline SharedNames shared_names(PyTypeObject*) { return {}; }
inline Attributes attributes_of(PyObject* object, PyTypeObject* type) {
  Attributes found;
  if (type->tp_dictoffset != 0) found.dict = _PyObject_GetDictPtr(object);
  return found;
}
#endif

// Has the memory fetched where the object keeps what it holds, if that is outside its beginning, which is in the cache.
// (If it were not inlined at once, GCC 12 would find that it does nothing, and leave it out.)
[[gnu::always_inline]] inline void fetch_parts(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  const void* part = nullptr;
  if (PyList_Check(object)) {
    part = reinterpret_cast<PyListObject*>(object)->ob_item;
  } else if (PyDict_Check(object)) {
    part = reinterpret_cast<PyDictObject*>(object)->ma_keys;
    __builtin_prefetch(reinterpret_cast<PyDictObject*>(object)->ma_values);
  } else if ((type->tp_flags & kManagedDictFlag) != 0) {
    part = values_of(object, type);
  }
  if (part == nullptr) return;
  for (const int offset : {-1, 0, 64}) __builtin_prefetch(static_cast<const char*>(part) + offset);
}

// Whether a dict's values lie in the block of an instance, which counts them.
inline bool has_embedded_values([[maybe_unused]] PyObject* dict) {
#if PY_VERSION_HEX >= 0x030D0000
  void* values = reinterpret_cast<PyDictObject*>(dict)->ma_values;
  return values != nullptr && field_at<std::uint8_t>(values, 2) != 0;
#else
  return false;
#endif
}

// The table of a dict, which keeps its values in it, too. (PyDictKeysObject: dk_refcnt, dk_log2_size,
// dk_log2_index_bytes, dk_kind, dk_nentries, dk_indices.)
struct OwnTable {
  std::ptrdiff_t references = 0;
  std::ptrdiff_t bytes = 0;
  PyObject** first = nullptr;  // key, value; null where there is none
  std::ptrdiff_t count = 0, stride = 0;
};

// False up to 3.10, and if the names are shared with other dicts.
inline bool find_own_table([[maybe_unused]] PyObject* dict, [[maybe_unused]] OwnTable& table) {
#if PY_VERSION_HEX >= 0x030B0000
  constexpr std::uint8_t kGeneralKeys = 0, kSplitKeys = 2;
  const auto* fields = reinterpret_cast<PyDictObject*>(dict);
  void* keys = fields->ma_keys;
  const auto kind = field_at<std::uint8_t>(keys, 10);
  if (fields->ma_values != nullptr || kind >= kSplitKeys) return false;
  const bool has_hashes = kind == kGeneralKeys;  // before each key
  const std::ptrdiff_t start = 32 + (std::ptrdiff_t{1} << field_at<std::uint8_t>(keys, 9));
  const std::ptrdiff_t room = (std::ptrdiff_t{2} << field_at<std::uint8_t>(keys, 8)) / 3;
  table.references = field_at<Py_ssize_t>(keys, 0);
  table.bytes = start + room * (has_hashes ? 24 : 16);
  table.first = &field_at<PyObject*>(keys, start + (has_hashes ? 8 : 0));
  table.count = field_at<Py_ssize_t>(keys, 24);
  table.stride = has_hashes ? 3 : 2;
  return true;
#else
  return false;
#endif
}

// Of frozendict (3.15), which is laid out as a dict is, and is no subclass of it.
inline bool is_frozen_dict([[maybe_unused]] PyTypeObject* type) {
#ifdef PyFrozenDict_Check
  return PyType_IsSubtype(type, &PyFrozenDict_Type) != 0;
#else
  return false;
#endif
}

// visit(key, value) for all that a dict has, in its order.
template <typename Visit>
void each_item(PyObject* dict, Visit visit) {
  if (OwnTable table; find_own_table(dict, table)) {
    for (PyObject** entry = table.first; table.count-- > 0; entry += table.stride)
      if (entry[1] != nullptr) visit(entry[0], entry[1]);
    return;
  }
  Py_ssize_t position = 0;
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  while (PyDict_Next(dict, &position, &key, &value) != 0) visit(key, value);
}

// Whether this is the interpreter's table of interned strs, which from 3.14 on the collector knows. Each of them is a
// key and the value of it, and neither is counted as a reference: known by one that has fewer than those two would be.
inline bool is_table_of_interned(PyObject* dict) {
  bool is_uncounted = false;
  Py_ssize_t position = 0;
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  while (PyDict_Next(dict, &position, &key, &value) != 0) {
    if (key != value || !PyUnicode_CheckExact(key) || PyUnicode_CHECK_INTERNED(key) == 0) return false;
    is_uncounted |= reference_count(key) == 1;
  }
  return is_uncounted;
}

// ---- numbers ----

// What int.__sizeof__ says.
inline std::size_t int_bytes(PyObject* number) {
#if PY_VERSION_HEX >= 0x030C0000
  const std::size_t digits = field_at<std::uintptr_t>(number, sizeof(PyObject)) >> 3U;  // lv_tag
  return sizeof(PyObject) + 8 + (digits == 0 ? 1 : digits) * 4;
#else
  const Py_ssize_t digits = reinterpret_cast<PyVarObject*>(number)->ob_size;
  return sizeof(PyVarObject) + static_cast<std::size_t>(digits < 0 ? -digits : digits) * 4;
#endif
}

// ---- classes ----

// The namespace of a class, borrowed. From 3.12 on that of a built-in class is kept by the interpreter.
inline PyObject* type_dict(PyTypeObject* type) {
#if PY_VERSION_HEX >= 0x030C0000
  if (type->tp_dict != nullptr) return type->tp_dict;
  PyObject* dict = PyType_GetDict(type);
  Py_XDECREF(dict);  // the interpreter holds it as long as the class is there
  return dict;
#else
  return type->tp_dict;
#endif
}

// ---- code ----

// visit(name, object) for all that a code object holds, which tp_traverse does not show.
template <typename Visit>
void visit_code(PyCodeObject* code, Visit visit) {
  visit("co_consts", code->co_consts);
  visit("co_names", code->co_names);
  visit("co_filename", code->co_filename);
  visit("co_name", code->co_name);
#if PY_VERSION_HEX >= 0x030B0000
  visit("co_qualname", code->co_qualname);
  visit("co_linetable", code->co_linetable);
  visit("co_exceptiontable", code->co_exceptiontable);
  visit("co_localsplusnames", code->co_localsplusnames);
  visit("co_localspluskinds", code->co_localspluskinds);
#if PY_VERSION_HEX >= 0x030C0000
  if (code->_co_cached != nullptr) {
    visit("co_code", code->_co_cached->_co_code);
    visit("co_varnames", code->_co_cached->_co_varnames);
    visit("co_cellvars", code->_co_cached->_co_cellvars);
    visit("co_freevars", code->_co_cached->_co_freevars);
  }
#else
  visit("co_code", code->_co_code);
#endif
#else
  visit("co_code", code->co_code);
  visit("co_varnames", code->co_varnames);
  visit("co_freevars", code->co_freevars);
  visit("co_cellvars", code->co_cellvars);
#if PY_VERSION_HEX >= 0x030A0000
  visit("co_linetable", code->co_linetable);
#else
  visit("co_lnotab", code->co_lnotab);
#endif
#endif
}

// ---- frames ----

// Where an interpreter frame keeps what it holds, in bytes. Up to 3.10 frames are objects, and show it themselves.
struct FrameFields {
  std::ptrdiff_t function, globals, locals, object;
  std::ptrdiff_t stack;  // how far what follows is in use: an int, which is negative where nobody knows, or a pointer
  std::ptrdiff_t variables;  // localsplus: arguments, local variables and cells, and then its stack
  bool is_tagged;            // variables are tagged references
};
#if PY_VERSION_HEX >= 0x030E0000
inline constexpr bool kFramesAreObjects = false;
inline constexpr FrameFields kFrameFields{16, 24, 40, 48, 64, 80, true};
#elif PY_VERSION_HEX >= 0x030C0000
inline constexpr bool kFramesAreObjects = false;
inline constexpr FrameFields kFrameFields{16, 24, 40, 48, 64, 72, false};
#elif PY_VERSION_HEX >= 0x030B0000
inline constexpr bool kFramesAreObjects = false;
inline constexpr FrameFields kFrameFields{0, 8, 24, 40, 64, 72, false};
#else
inline constexpr bool kFramesAreObjects = true;
inline constexpr FrameFields kFrameFields{};
#endif

// Names of a code object's variables, in the order of a frame's.
inline PyObject* variable_names(PyCodeObject* code) {
#if PY_VERSION_HEX >= 0x030B0000
  return code->co_localsplusnames;
#else
  return code->co_varnames;
#endif
}

// How many places of a frame are in use: its variables, and of its stack those that it goes on with when the call that
// it waits for is done. Up to 3.13 that is not written down while the call is one of C code.
inline Py_ssize_t places_in_use([[maybe_unused]] void* frame, [[maybe_unused]] PyCodeObject* code) {
#if PY_VERSION_HEX >= 0x030B0000
  const char* const first = static_cast<char*>(frame) + kFrameFields.variables;
  const Py_ssize_t places = kFrameFields.is_tagged ? (field_at<const char*>(frame, kFrameFields.stack) - first) / 8
                                                   : field_at<std::int32_t>(frame, kFrameFields.stack);
  return places <= Py_ssize_t{code->co_nlocalsplus} + code->co_stacksize ? places : 0;
#else
  return 0;
#endif
}

// visit(object) for the objects that the collector knows, until that is false; all while no other thread runs. In
// free-threaded builds; else does nothing.
inline void visit_each_alone([[maybe_unused]] const std::function<bool(PyObject*)>& visit) {
#ifdef Py_GIL_DISABLED
  PyUnstable_GC_VisitObjects(
      [](PyObject* object, void* told) {
        return (*static_cast<const std::function<bool(PyObject*)>*>(told))(object) ? 1 : 0;
      },
      const_cast<std::function<bool(PyObject*)>*>(&visit));
#endif
}

// Runs `work` while no other thread runs Python code. False if it did not run.
inline bool run_alone(const std::function<void()>& work) {
  if (!kIsFreeThreaded) {
    work();
    return true;
  }
  bool is_done = false;
  // The world is stopped around all visits; the first does everything.
  visit_each_alone([&](PyObject*) {
    work();
    is_done = true;
    return false;
  });
  return is_done;
}

// What a thread state holds beside its frames; null for what it does not have.
inline std::array<PyObject*, 4> held_by_thread(PyThreadState* thread) {
  return {thread->dict, thread->context, thread->async_exc, thread->exc_info->exc_value};
}

}  // namespace plimsoll::python
