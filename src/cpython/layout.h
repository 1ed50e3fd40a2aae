// cpython/layout.h: where CPython keeps things. All knowledge of versions is in a Layout; walkers only read it.
//
// Up to 3.12 a Layout is a table of ours for each minor version (offsets inside a minor version have not changed in
// practice; check_layout proves it for the interpreter at hand). From 3.13 it is parsed from _Py_DebugOffsets, the
// first object in _PyRuntime, whose own layout is known for each minor version.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "memory/reader.h"

namespace plimsoll::cpython {

// A version and build of the interpreter, as in sys.version_info and sysconfig's Py_GIL_DISABLED.
struct Version {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned micro = 0;
  // Free-threaded builds (3.13t and later) lay out objects differently.
  enum class Threading : std::uint8_t { kGil, kFree } threading = Threading::kGil;

  // PY_VERSION_HEX (or the exported Py_Version) as a Version.
  static Version from_hex(std::uint32_t hex, Threading threading);
  // For example "3.14.2" or "3.14.2t".
  [[nodiscard]] std::string text() const;
};

// How a thread state names its current frame, and what a frame is.
enum class FrameStyle : std::uint8_t {
  kFrameObject,  // 3.9, 3.10: tstate->frame is a PyFrameObject
  kCFrame,       // 3.11, 3.12: tstate->cframe->current_frame is a _PyInterpreterFrame
  kDirect,       // 3.13+: tstate->current_frame is a _PyInterpreterFrame
};

// What a frame remembers of its position.
enum class PositionStyle : std::uint8_t {
  kLastiBytes,   // 3.9: f_lasti counts bytes
  kLastiUnits,   // 3.10: f_lasti counts 2-byte units
  kInstruction,  // 3.11+: a pointer into the bytecode
};

// How a code object maps bytecode to lines.
enum class LineTableStyle : std::uint8_t {
  kLnotab,     // 3.9: (u8 bytecode delta, s8 line delta)
  kDeltas,     // 3.10: PEP 626, the same pairs with ranges and "no line"
  kLocations,  // 3.11+: PEP 657, with columns
};

// A field that this version does not have.
inline constexpr std::uint32_t kNoField = 0xffffffffU;

// How many bytes of a structure hold these fields, of 8 bytes at most.
constexpr std::size_t end_of_fields(std::initializer_list<std::uint32_t> fields) {
  std::size_t end = 0;
  for (const std::uint32_t field : fields)
    if (field != kNoField) end = std::max(end, field + std::size_t{8});
  return end;
}

// Offsets in bytes. See the comments for the C names.
struct Layout {
  Version version;
  FrameStyle frame_style{};
  PositionStyle position_style{};
  LineTableStyle line_table_style{};

  struct {
    std::uint32_t current_frame;          // frame, cframe or current_frame, by FrameStyle
    std::uint32_t thread_id;              // pthread_self() of its thread
    std::uint32_t root_entry = kNoField;  // root_cframe, the _PyCFrame around all others; kCFrame only
    std::uint32_t chunk = kNoField;  // datastack_chunk, where its newest frames are, datastack_top behind it; kCFrame
    std::uint32_t previous = 0, next = 8, interpreter = 16;  // its place in the interpreter's list of thread states
    std::uint32_t context = kNoField;                        // the contextvars.Context that the thread is in, or null
    std::uint32_t native_thread_id = kNoField;               // the kernel's id of its thread, 8 bytes; 3.11+
  } tstate{};
  struct {
    std::uint32_t current_frame, previous;  // of _PyCFrame; kCFrame only
  } cframe{};
  struct {
    std::uint32_t executable;             // f_code or f_executable
    std::uint32_t previous;               // f_back or previous
    std::uint32_t position;               // f_lasti, prev_instr or instr_ptr
    std::uint32_t owner;                  // enum _frameowner, one byte; kNoField up to 3.10
    std::uint32_t tlbc_index;             // which copy of the bytecode; kNoField but for free-threaded 3.14+
    std::uint32_t entry_mark = kNoField;  // kCFrame: one byte, at least first_entry_mark in the outermost of an entry
    // 3.12, for frames that may have no caller yet (see calls_it in walk.h): how far behind what it calls a frame goes
    // on, 2 bytes, and the function that it is a call of.
    std::uint32_t return_offset = kNoField, function = kNoField;
  } frame{};
  struct {
    std::uint32_t filename, name;
    std::uint32_t qualname;            // kNoField up to 3.10
    std::uint32_t first_line;          // int
    std::uint32_t line_table;          // co_lnotab or co_linetable: a bytes object
    std::uint32_t bytecode;            // co_code_adaptive, inside the code object; up to 3.10 co_code, a bytes object
    std::uint32_t tlbc;                // co_tlbc; kNoField where there is none
    std::uint32_t version = kNoField;  // co_version, 4 bytes, which no other code object has; 3.12+
  } code{};
  struct {
    std::uint32_t type;      // ob_type
    std::uint32_t var_size;  // ob_size of a variable-sized object
  } object{};
  struct {
    std::uint32_t data;  // ob_sval
  } bytes{};
  struct {
    std::uint32_t state, length;
    std::uint32_t ascii_size, compact_size;  // sizeof PyASCIIObject, PyCompactUnicodeObject: where the text starts
    std::uint32_t kind_shift;                // of the bit-field in state; compact and ascii follow its three bits
  } unicode{};

  // What is looked for where a chain of frames is cut at a generator; 3.11, and with what find_caller needs, 3.12.
  struct {
    std::uint32_t frame = kNoField;   // of a generator: gi_iframe, its frame
    std::uint32_t state = kNoField;   // of a generator: gi_frame_state, one byte; 3.11
    std::uint32_t values = kNoField;  // of a frame: localsplus, its variables and then its stack
    std::uint32_t words = kNoField;   // of a code object: co_framesize, the words of a frame with all of these; an int
  } generator{};

  // The way from _PyRuntime to all thread states.
  struct {
    std::uint32_t interpreters;      // of _PyRuntime: interpreters.head
    std::uint32_t next_interpreter;  // of an interpreter: next
    std::uint32_t threads;           // of an interpreter: tstate_head or threads.head
  } runtime{};

  struct {
    std::uint32_t in_runtime = kNoField;      // up to 3.11: the lock itself, inside _PyRuntime
    std::uint32_t in_interpreter = kNoField;  // from 3.12: a pointer to it, inside the interpreter's state
    // Of the lock, after its interval: the thread state that has taken it last, and whether it is taken.
    std::uint32_t last_holder = 8, is_locked = 16;
  } gil{};

  // A context is a persistent hash tree (HAMT) of variables; see context.h.
  struct {
    std::uint32_t variables;               // of a context: ctx_vars, the HAMT
    std::uint32_t root;                    // of a HAMT: h_root, a node
    std::uint32_t bitmap, bitmap_entries;  // of a node with a bitmap: b_bitmap, b_array
    std::uint32_t array_entries;           // of a node with 32 children: a_array
  } context{};

  // Of a code object: where its name is, with those of what it stands in if this version has that.
  [[nodiscard]] constexpr std::uint32_t code_name() const {
    return code.qualname != kNoField ? code.qualname : code.name;
  }

  // Whether each entry from C into Python can be found on the C stack; see EntryMarks.
  [[nodiscard]] bool has_entry_marks() const { return frame_style != FrameStyle::kFrameObject; }

  // Whether a frame of Python code says that C code entered Python there. (3.12 has marked frames, too, but those are
  // the entries' own.)
  [[nodiscard]] bool entries_are_marked() const {
    return frame_style == FrameStyle::kCFrame && frame.entry_mark != kNoField && frame.entry_mark != frame.owner;
  }

  // Frames whose owner is at least this are entries from C into Python, not Python code. No owner field: none are.
  std::uint8_t first_shim_owner = 0xff;
  std::uint8_t first_entry_mark = 0xff;
  // Whether the outermost frame of a thread is one; 3.12+.
  bool threads_begin_with_entries = false;
  // Bits of frame.executable that are not part of the pointer.
  std::uint64_t executable_tag_mask = 0;
};

// Fills in what a lookup of a context variable needs, for the layout's version. No version publishes these offsets, but
// they are the same in all but for the size of an object's head and the place in the thread state.
void set_context_fields(Layout& layout, std::uint32_t in_thread_state);

// The table for 3.9 to 3.12; another version is an error that says what is supported.
Result<Layout> layout_from_table(const Version& version);

// Parses the bytes of _Py_DebugOffsets (3.13 to 3.15): `bytes` starts at the cookie and holds at least
// kDebugOffsetsSize bytes. Hostile input is fine: every offset is checked against the size of its structure.
Result<Layout> layout_from_debug_offsets(const unsigned char* bytes, std::size_t size);
inline constexpr std::size_t kDebugOffsetsSize = 1024;  // more than any version's

// The Layout of the interpreter whose _PyRuntime lies at `runtime`; `version` says which kind of table to expect.
template <memory::Reader M>
Result<Layout> find_layout(const M& memory, const Version& version, Address runtime) {
  if (version.major == 3 && version.minor <= 12) return layout_from_table(version);
  unsigned char bytes[kDebugOffsetsSize];
  if (is_null(runtime) || !memory.read(runtime, bytes, sizeof bytes))
    return Error{ErrorKind::kUnsupported, "cannot read _Py_DebugOffsets of Python " + version.text() +
                                              ": the symbol _PyRuntime is missing or its memory unreadable"};
  return layout_from_debug_offsets(bytes, sizeof bytes);
}

}  // namespace plimsoll::cpython
