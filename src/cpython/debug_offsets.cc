// cpython/debug_offsets.cc: _Py_DebugOffsets -> Layout.
//
// The structure is a sequence of 64-bit numbers in named groups. Fields were inserted into the middle of groups from
// one minor version to the next, so each version has a table of the places (in words from the cookie) of the numbers
// that we need; the numbers themselves are read from the interpreter.
#include <cstring>

#include "cpython/layout.h"
#include "cpython/offset_reader.h"

namespace plimsoll::cpython {
namespace {

constexpr std::size_t kCookieWord = 0;
constexpr std::size_t kVersionWord = 1;
constexpr std::size_t kFreeThreadedWord = 2;
constexpr char kCookie[] = "xdebugpy";
// A place for a field that the version does not have.
constexpr std::size_t kAbsent = 0;

// Places of a group's `size` word and of the fields after it, in words from the cookie.
struct Places {
  std::size_t runtime, interpreters;
  std::size_t interpreter, next_interpreter, threads, ceval_gil;
  std::size_t thread, thread_previous, thread_next, thread_interpreter, current_frame, thread_id, native_thread_id;
  std::size_t frame, previous, executable, instr_ptr, owner, tlbc_index;
  std::size_t code, filename, name, qualname, linetable, firstlineno, bytecode, tlbc;
  std::size_t object, type;
  std::size_t tuple, tuple_size;
  std::size_t bytes, bytes_data;
  std::size_t unicode, state, length, ascii_size;
};

// One structure a line, as CPython declares them.
// clang-format off

// 3.13: groups runtime(3) interpreter(13) thread(9) frame(6) code(10) object(2) type(4) tuple(3) list(3) dict(3)
// float(2) long(3) bytes(3) unicode(4) gc(2).
constexpr Places kPlaces313{
    .runtime = 3, .interpreters = 5,
    .interpreter = 6, .next_interpreter = 8, .threads = 9, .ceval_gil = 14,
    .thread = 19, .thread_previous = 20, .thread_next = 21, .thread_interpreter = 22, .current_frame = 23,
    .thread_id = 24, .native_thread_id = 25,
    .frame = 28, .previous = 29, .executable = 30, .instr_ptr = 31, .owner = 33, .tlbc_index = kAbsent,
    .code = 34, .filename = 35, .name = 36, .qualname = 37, .linetable = 38, .firstlineno = 39, .bytecode = 43,
    .tlbc = kAbsent,
    .object = 44, .type = 45,
    .tuple = 50, .tuple_size = 52,
    .bytes = 64, .bytes_data = 66,
    .unicode = 67, .state = 68, .length = 69, .ascii_size = 70};

// 3.14: interpreter has three more, frame two (stackpointer, tlbc_index), code one (co_tlbc), and set(4) is new.
constexpr Places kPlaces314{
    .runtime = 3, .interpreters = 5,
    .interpreter = 6, .next_interpreter = 8, .threads = 9, .ceval_gil = 15,
    .thread = 22, .thread_previous = 23, .thread_next = 24, .thread_interpreter = 25, .current_frame = 26,
    .thread_id = 27, .native_thread_id = 28,
    .frame = 31, .previous = 32, .executable = 33, .instr_ptr = 34, .owner = 36, .tlbc_index = 38,
    .code = 39, .filename = 40, .name = 41, .qualname = 42, .linetable = 43, .firstlineno = 44, .bytecode = 48,
    .tlbc = 49,
    .object = 50, .type = 51,
    .tuple = 56, .tuple_size = 58,
    .bytes = 74, .bytes_data = 76,
    .unicode = 77, .state = 78, .length = 79, .ascii_size = 80};

// 3.15: thread has seven more (three of them before thread_id), err_stackitem(1), two more in type, heap_type(2).
constexpr Places kPlaces315{
    .runtime = 3, .interpreters = 5,
    .interpreter = 6, .next_interpreter = 8, .threads = 9, .ceval_gil = 15,
    .thread = 22, .thread_previous = 23, .thread_next = 24, .thread_interpreter = 25, .current_frame = 26,
    .thread_id = 30, .native_thread_id = 31,
    .frame = 39, .previous = 40, .executable = 41, .instr_ptr = 42, .owner = 44, .tlbc_index = 46,
    .code = 47, .filename = 48, .name = 49, .qualname = 50, .linetable = 51, .firstlineno = 52, .bytecode = 56,
    .tlbc = 57,
    .object = 58, .type = 59,
    .tuple = 68, .tuple_size = 70,
    .bytes = 86, .bytes_data = 88,
    .unicode = 89, .state = 90, .length = 91, .ascii_size = 92};
// clang-format on

Layout read_fields(OffsetReader& read, const Places& at, const Version& version) {
  const std::uint32_t ascii_size = read.size("unicode_object.asciiobject_size", at.ascii_size);
  const bool per_thread_bytecode = version.threading == Version::Threading::kFree && at.tlbc != kAbsent;
  Layout layout;
  layout.version = version;
  layout.frame_style = FrameStyle::kDirect;
  layout.position_style = PositionStyle::kInstruction;
  layout.line_table_style = LineTableStyle::kLocations;
  layout.tstate = {.current_frame = read.field("thread_state.current_frame", at.thread, at.current_frame, 8),
                   .thread_id = read.field("thread_state.thread_id", at.thread, at.thread_id, 8),
                   .previous = read.field("thread_state.prev", at.thread, at.thread_previous, 8),
                   .next = read.field("thread_state.next", at.thread, at.thread_next, 8),
                   .interpreter = read.field("thread_state.interp", at.thread, at.thread_interpreter, 8),
                   .native_thread_id = read.field("thread_state.native_thread_id", at.thread, at.native_thread_id, 8)};
  layout.runtime = {.interpreters = read.field("runtime_state.interpreters_head", at.runtime, at.interpreters, 8),
                    .next_interpreter = read.field("interpreter_state.next", at.interpreter, at.next_interpreter, 8),
                    .threads = read.field("interpreter_state.threads_head", at.interpreter, at.threads, 8)};
  layout.gil.in_interpreter = read.field("interpreter_state.ceval_gil", at.interpreter, at.ceval_gil, 8);
  layout.frame = {.executable = read.field("interpreter_frame.executable", at.frame, at.executable, 8),
                  .previous = read.field("interpreter_frame.previous", at.frame, at.previous, 8),
                  .position = read.field("interpreter_frame.instr_ptr", at.frame, at.instr_ptr, 8),
                  .owner = read.field("interpreter_frame.owner", at.frame, at.owner, 1),
                  .tlbc_index = per_thread_bytecode
                                    ? read.field("interpreter_frame.tlbc_index", at.frame, at.tlbc_index, 4)
                                    : kNoField};
  layout.code = {.filename = read.field("code_object.filename", at.code, at.filename, 8),
                 .name = read.field("code_object.name", at.code, at.name, 8),
                 .qualname = read.field("code_object.qualname", at.code, at.qualname, 8),
                 .first_line = read.field("code_object.firstlineno", at.code, at.firstlineno, 4),
                 .line_table = read.field("code_object.linetable", at.code, at.linetable, 8),
                 .bytecode = read.field("code_object.co_code_adaptive", at.code, at.bytecode, 1),
                 .tlbc = per_thread_bytecode ? read.field("code_object.co_tlbc", at.code, at.tlbc, 8) : kNoField};
  // After the first line there are five ints of sizes and counts, and then this.
  layout.code.version = layout.code.first_line + 24;
  layout.object = {.type = read.field("pyobject.ob_type", at.object, at.type, 8),
                   // ob_size stands at the same place in every variable-sized object; a tuple is one.
                   .var_size = read.field("tuple_object.ob_size", at.tuple, at.tuple_size, 8)};
  layout.bytes = {.data = read.field("bytes_object.ob_sval", at.bytes, at.bytes_data, 1)};
  layout.unicode = {.state = read.field("unicode_object.state", at.unicode, at.state, 4),
                    .length = read.field("unicode_object.length", at.unicode, at.length, 8),
                    .ascii_size = ascii_size,
                    // A compact object adds utf8_length and utf8 to an ASCII one, since 3.12.
                    .compact_size = ascii_size + 16,
                    // Free-threaded 3.14 made `interned` a byte of its own in front of the bit-field.
                    .kind_shift = version.threading == Version::Threading::kFree && version.minor >= 14 ? 8U : 2U};
  set_context_fields(layout, version.minor >= 15 ? 232 : 208);
  layout.first_shim_owner = 3;
  layout.threads_begin_with_entries = true;
  // 3.14 and free-threaded builds keep flags in the low bits of a stack reference; code objects are 8-aligned anyway.
  layout.executable_tag_mask = 7;
  return layout;
}

}  // namespace

Result<Layout> layout_from_debug_offsets(const unsigned char* bytes, std::size_t size) {
  if (size < kDebugOffsetsSize) return Error{ErrorKind::kBadInput, "_Py_DebugOffsets is cut short"};
  OffsetReader read(bytes);
  if (std::memcmp(bytes + kCookieWord * 8, kCookie, 8) != 0)
    return Error{ErrorKind::kUnsupported, "_PyRuntime does not start with CPython's debug offsets (no cookie)"};
  const std::uint64_t threading = read.word(kFreeThreadedWord);
  const Version version = Version::from_hex(static_cast<std::uint32_t>(read.word(kVersionWord)),
                                            threading != 0 ? Version::Threading::kFree : Version::Threading::kGil);
  const Places* places = nullptr;
  if (version.major == 3 && version.minor == 13) places = &kPlaces313;
  if (version.major == 3 && version.minor == 14) places = &kPlaces314;
  if (version.major == 3 && version.minor == 15) places = &kPlaces315;
  if (places == nullptr || threading > 1)
    return Error{ErrorKind::kUnsupported,
                 "Python " + version.text() + " is not supported: Plimsoll knows CPython 3.9 to 3.15"};
  Layout layout = read_fields(read, *places, version);
  if (read.bad_field() != nullptr)
    return Error{ErrorKind::kUnsupported, "Python " + version.text() + " publishes an impossible offset for " +
                                              read.bad_field() + ": this build is not supported"};
  return layout;
}

}  // namespace plimsoll::cpython
