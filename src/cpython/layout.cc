#include "cpython/layout.h"

namespace plimsoll::cpython {

Version Version::from_hex(std::uint32_t hex, Threading threading) {
  return Version{hex >> 24U, (hex >> 16U) & 0xffU, (hex >> 8U) & 0xffU, threading};
}

std::string Version::text() const {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(micro) +
         (threading == Threading::kFree ? "t" : "");
}

void set_context_fields(Layout& layout, std::uint32_t in_thread_state) {
  const std::uint32_t head = layout.object.type + 8;  // PyObject_HEAD, whose last member is the type
  layout.tstate.context = in_thread_state;
  layout.context = {.variables = head + 8,  // after ctx_prev
                    .root = head,
                    .bitmap = head + 8,  // after ob_size
                    .bitmap_entries = head + 16,
                    .array_entries = head};
}

namespace {

// What 3.9 and 3.10 have in common: frames are objects, and unicode objects still hold a wchar_t pointer.
Layout frame_object_layout() {
  Layout layout;
  layout.frame_style = FrameStyle::kFrameObject;
  layout.tstate = {.current_frame = 24, .thread_id = 176};
  layout.gil.in_runtime = 352;
  layout.runtime = {.interpreters = 32, .next_interpreter = 0, .threads = 8};
  layout.frame = {.executable = 32, .previous = 24, .position = 0, .owner = kNoField, .tlbc_index = kNoField};
  layout.code = {.filename = 104,
                 .name = 112,
                 .qualname = kNoField,
                 .first_line = 40,
                 .line_table = 120,
                 .bytecode = 48,
                 .tlbc = kNoField};
  layout.object = {.type = 8, .var_size = 16};
  layout.bytes = {.data = 32};
  layout.unicode = {.state = 32, .length = 16, .ascii_size = 48, .compact_size = 72, .kind_shift = 2};
  return layout;
}

// What 3.11 and 3.12 have in common: interpreter frames behind a _PyCFrame.
Layout cframe_layout() {
  Layout layout;
  layout.frame_style = FrameStyle::kCFrame;
  layout.position_style = PositionStyle::kInstruction;
  layout.line_table_style = LineTableStyle::kLocations;
  layout.tstate = {.current_frame = 56, .thread_id = 0};
  layout.object = {.type = 8, .var_size = 16};
  layout.bytes = {.data = 32};
  layout.unicode = {.state = 32, .length = 16, .ascii_size = 48, .compact_size = 72, .kind_shift = 2};
  return layout;
}

Layout layout_3_9() {
  Layout layout = frame_object_layout();
  layout.position_style = PositionStyle::kLastiBytes;
  layout.line_table_style = LineTableStyle::kLnotab;
  layout.frame.position = 104;
  return layout;
}

Layout layout_3_10() {
  Layout layout = frame_object_layout();
  layout.position_style = PositionStyle::kLastiUnits;
  layout.line_table_style = LineTableStyle::kDeltas;
  layout.frame.position = 96;
  return layout;
}

Layout layout_3_11() {
  Layout layout = cframe_layout();
  layout.tstate.thread_id = 152;
  layout.tstate.native_thread_id = 160;
  layout.runtime = {.interpreters = 40, .next_interpreter = 0, .threads = 16};
  layout.tstate.root_entry = 336;
  layout.tstate.chunk = 296;
  layout.gil.in_runtime = 360;
  layout.cframe = {.current_frame = 8, .previous = 16};
  layout.frame = {.executable = 32,
                  .previous = 48,
                  .position = 56,
                  .owner = 69,
                  .tlbc_index = kNoField,
                  .entry_mark = 68};  // is_entry
  layout.first_entry_mark = 1;
  layout.generator = {.frame = 80, .state = 75};
  layout.code = {.filename = 112,
                 .name = 120,
                 .qualname = 128,
                 .first_line = 72,
                 .line_table = 136,
                 .bytecode = 184,
                 .tlbc = kNoField};
  layout.first_shim_owner = 3;
  return layout;
}

Layout layout_3_12() {
  Layout layout = cframe_layout();
  layout.tstate.thread_id = 136;
  layout.tstate.native_thread_id = 144;
  layout.runtime = {.interpreters = 40, .next_interpreter = 0, .threads = 72};
  layout.tstate.root_entry = 272;
  layout.tstate.chunk = 232;
  layout.gil.in_interpreter = 384;
  layout.cframe = {.current_frame = 0, .previous = 8};
  layout.frame = {.executable = 0,
                  .previous = 8,
                  .position = 56,
                  .owner = 70,
                  .tlbc_index = kNoField,
                  .entry_mark = 70,  // owner: FRAME_OWNED_BY_CSTACK
                  .return_offset = 68,
                  .function = 16};
  layout.generator = {.frame = 72, .state = kNoField, .values = 72, .words = 76};
  layout.first_entry_mark = 3;
  layout.code = {.filename = 112,
                 .name = 120,
                 .qualname = 128,
                 .first_line = 68,
                 .line_table = 136,
                 .bytecode = 192,
                 .tlbc = kNoField,
                 .version = 92};
  layout.unicode.ascii_size = 40;
  layout.unicode.compact_size = 56;
  layout.first_shim_owner = 3;
  layout.threads_begin_with_entries = true;
  return layout;
}

}  // namespace

Result<Layout> layout_from_table(const Version& version) {
  Layout layout;
  if (version.major != 3 || version.threading == Version::Threading::kFree || version.minor < 9 || version.minor > 12)
    return Error{ErrorKind::kUnsupported,
                 "Python " + version.text() + " is not supported: Plimsoll knows CPython 3.9 to 3.15"};
  std::uint32_t context = 0;
  switch (version.minor) {
    case 9: layout = layout_3_9(), context = 240; break;
    case 10: layout = layout_3_10(), context = 240; break;
    case 11: layout = layout_3_11(), context = 224; break;
    default: layout = layout_3_12(), context = 208; break;
  }
  set_context_fields(layout, context);
  layout.version = version;
  return layout;
}

}  // namespace plimsoll::cpython
