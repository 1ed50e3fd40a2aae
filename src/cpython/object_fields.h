// cpython/object_fields.h: where CPython's own objects keep what they hold, for walking a heap without its help.
//
// Beside Layout, which frames and code objects need. Fields that have been at one place from 3.9 to 3.15 are constants;
// those that have moved are in a table by minor version, measured with the headers of each. None is published by
// _Py_DebugOffsets in all versions; a build for which one does not hold is recognised by the sizes of its types.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "cpython/layout.h"

namespace plimsoll::cpython {

// PyTypeObject; offsets in bytes.
namespace type_field {
inline constexpr std::uint32_t kName = 24, kBasicSize = 32, kItemSize = 40, kFlags = 168, kWeakListOffset = 208,
                               kMembers = 240, kBase = 256, kDict = 264, kDictOffset = 288, kBases = 336, kMro = 344,
                               kCache = 352, kSubclasses = 360;
inline constexpr std::uint32_t kSize = 408;  // the least of any version
}  // namespace type_field

// tp_flags.
namespace type_flag {
inline constexpr std::uint64_t kHeapType = 1U << 9U, kReady = 1U << 12U, kCollected = 1U << 14U, kInt = 1U << 24U,
                               kList = 1U << 25U, kTuple = 1U << 26U, kBytes = 1U << 27U, kText = 1U << 28U,
                               kDict = 1U << 29U, kException = 1U << 30U, kType = 1U << 31U;
}  // namespace type_flag

// PyMemberDef.
namespace member_field {
inline constexpr std::uint32_t kName = 0, kType = 8, kOffset = 16, kSize = 40;
inline constexpr std::uint32_t kObject = 6, kObjectEx = 16;  // values of type that are references
}  // namespace member_field

// Containers: dict, set, list, deque, OrderedDict, weakref, bytearray, module, cell, exception.
namespace container_field {
inline constexpr std::uint32_t kDictUsed = 16, kDictKeys = 32, kDictValues = 40;
inline constexpr std::uint32_t kSetUsed = 24, kSetMask = 32, kSetTable = 40, kSetSmallTable = 64;
inline constexpr std::uint32_t kListItems = 24, kListAllocated = 32;
inline constexpr std::uint32_t kDequeLeftBlock = 24, kDequeLeftIndex = 40;
inline constexpr std::uint32_t kOrderedFirst = 48, kOrderedFastSize = 72;
inline constexpr std::uint32_t kWeakReferent = 16, kWeakCallback = 24;
inline constexpr std::uint32_t kByteArrayAllocated = 24, kByteArrayBlock = 32, kArrayItems = 24;
inline constexpr std::uint32_t kByteArrayStart = 40, kModuleDict = 16, kCellContent = 16, kExceptionArguments = 24;
}  // namespace container_field

// PyArrayObject of NumPy 1 and 2: data, nd, dimensions, strides, base, descr, flags, and what has come later.
// PyArray_Descr: typeobj, kind and others, type_num; then in NumPy 1 elsize, alignment, subarray and fields; in NumPy 2
// flags, elsize and alignment, 8 bytes each.
namespace numpy_field {
inline constexpr std::uint32_t kData = 16, kDimensionCount = 24, kDimensions = 32, kBase = 48, kDescription = 56,
                               kFlags = 64, kLater = 72;
inline constexpr std::uint32_t kOwnsData = 4;         // a flag
inline constexpr std::uint32_t kMostDimensions = 64;  // NPY_MAXDIMS of NumPy 2; 32 of NumPy 1
inline constexpr std::uint32_t kElementType = 16, kTypeNumber = 28, kElementSize1 = 32, kElementSize2 = 40,
                               kAlignment2 = 48;
inline constexpr std::uint32_t kObjects = 17;  // a type's number: NPY_OBJECT
}  // namespace numpy_field

// How a dict keeps its keys: PyDictKeysObject.
enum class KeysStyle : std::uint8_t {
  kSized,  // 3.9, 3.10: dk_size; every entry has a hash; values may be shared
  kKinds,  // 3.11+: dk_log2_size and a kind
};

// Where an instance keeps its attributes if neither in slots nor in a dict at tp_dictoffset.
enum class ValuesStyle : std::uint8_t {
  kNone,      // 3.9, 3.10
  kTwoWords,  // 3.11: values at -32, a dict at -24
  kOneWord,   // 3.12: at -24 a dict, or values whose address is odd
  kInside,    // 3.13+: a dict at -24, values behind the object
};

// Fields that have moved; offsets in bytes, kNoField where there is none.
struct ObjectFields {
  KeysStyle keys_style{};
  ValuesStyle values_style{};
  std::uint64_t managed_dict_flag = 0, pre_header_flags = 0, inline_values_flag = 0;
  bool has_tagged_frames = false;  // variables of frames are tagged references: 3.14+

  std::uint32_t function_qualname = 40;
  std::uint32_t tuple_items = 24;
  std::uint32_t byte_array_extra = 0;  // bytes of its buffer that ob_alloc does not count
  std::uint32_t list_head = 0;         // bytes in front of a list's items in their block

  // Sizes of types as they say themselves; what does not agree is another build.
  struct {
    std::uint32_t type, code, function, frame;
  } size{};
  struct {
    std::uint32_t name, slots, qualname, shared_keys, module;
  } heap_type{};
  struct {
    std::uint32_t modules, dict, builtins;
    std::uint32_t size;      // of PyInterpreterState
    std::uint32_t built_in;  // where the namespaces of built-in classes are kept: 3.12+
  } interpreter{};
  struct {
    std::uint32_t dict, context, async_exception, exception;  // exc_info: a pointer to the state of an exception,
    std::uint32_t value;                                      // of which this is the exception
  } thread{};
  struct {
    std::uint32_t function, globals, locals, object;  // `locals`: f_locals, of frame objects up to 3.10
    std::uint32_t stack;      // how far its variables go: an int, or a pointer behind the last one
    std::uint32_t variables;  // localsplus
  } frame{};
  struct {
    std::uint32_t back, frame, data;  // f_back; f_frame and _f_frame_data of 3.11+
    std::uint32_t stack;              // 3.9: f_stacktop, 3.10: f_stackdepth
    std::uint32_t generator;          // 3.9, 3.10: f_gen, which holds no reference
  } frame_object{};
  struct {
    std::uint32_t frame, state;  // gi_iframe, gi_frame_state
    std::uint32_t exception;     // the last of the references in front of it: gi_exc_state
    std::uint32_t finalizer;     // of async generators: ag_origin_or_finalizer
    std::int8_t cleared;         // the state of one that has no frame any more, or a greater one
  } generator{};
  struct {
    std::uint32_t consts, names, varnames, freevars, cellvars, bytecode, exception_table, variable_names,
        variable_kinds;
    std::uint32_t cached;                          // 3.12+: a pointer to four more, or null
    std::uint32_t variables, stack_size;           // counts, ints
    std::uint32_t arguments, keyword_only, flags;  // likewise; variables without those of cells, up to 3.10
  } code{};
  struct {
    std::uint32_t definition, state;
    std::uint32_t state_size;  // in the module (3.15), or else in its definition
  } module{};
};

// For 3.9 to 3.15, with a GIL or without; other versions are an error that says so. All places and sizes of objects are
// without what the head of a free-threaded build's object is longer (ObjectView::head_shift).
Result<ObjectFields> object_fields(const Version& version);

}  // namespace plimsoll::cpython
