#include "cpython/object_fields.h"

namespace plimsoll::cpython {
namespace {

ObjectFields fields_3_9() {
  ObjectFields fields;
  fields.function_qualname = 104;
  fields.size = {.type = 880, .code = 176, .function = 120, .frame = 368};
  fields.heap_type = {.name = 840, .slots = 848, .qualname = 856, .shared_keys = 864, .module = 872};
  fields.interpreter = {.modules = 856, .dict = 1376, .builtins = 880, .size = 5656, .built_in = kNoField};
  fields.thread = {.dict = 152, .context = 240, .async_exception = 168, .exception = 144, .value = 8};
  fields.frame = {.function = kNoField,
                  .globals = kNoField,
                  .locals = 56,
                  .object = kNoField,
                  .stack = kNoField,
                  .variables = kNoField};
  fields.frame_object = {.back = 24, .frame = kNoField, .data = 360, .stack = 72, .generator = 96};
  fields.generator = {kNoField, kNoField, kNoField, kNoField, 0};
  fields.code = {.consts = 56,
                 .names = 64,
                 .varnames = 72,
                 .freevars = 80,
                 .cellvars = 88,
                 .bytecode = 48,
                 .exception_table = kNoField,
                 .variable_names = kNoField,
                 .variable_kinds = kNoField,
                 .cached = kNoField,
                 .variables = 28,
                 .stack_size = 32,
                 .arguments = 16,
                 .keyword_only = 24,
                 .flags = 36};
  fields.module = {.definition = 24, .state = 32, .state_size = kNoField};
  return fields;
}

ObjectFields fields_3_10() {
  ObjectFields fields = fields_3_9();
  fields.function_qualname = 40;
  fields.size = {.type = 888, .code = 176, .function = 128, .frame = 360};
  fields.heap_type = {.name = 848, .slots = 856, .qualname = 864, .shared_keys = 872, .module = 880};
  fields.interpreter = {.modules = 856, .dict = 1344, .builtins = 880, .size = 113528, .built_in = kNoField};
  fields.frame_object = {.back = 24, .frame = kNoField, .data = 352, .stack = 80, .generator = 88};
  return fields;
}

ObjectFields fields_3_11() {
  ObjectFields fields = fields_3_10();
  fields.keys_style = KeysStyle::kKinds;
  fields.values_style = ValuesStyle::kTwoWords;
  fields.managed_dict_flag = fields.pre_header_flags = 1U << 4U;
  fields.size = {.type = 904, .code = 184, .function = 136, .frame = 120};
  fields.interpreter = {.modules = 888, .dict = 1400, .builtins = 912, .size = 107752, .built_in = kNoField};
  fields.thread = {.dict = 128, .context = 224, .async_exception = 144, .exception = 120, .value = 0};
  fields.frame = {.function = 0, .globals = 8, .locals = 24, .object = 40, .stack = 64, .variables = 72};
  fields.frame_object = {.back = 16, .frame = 24, .data = 48, .stack = kNoField, .generator = kNoField};
  fields.generator = {.frame = 80, .state = 75, .exception = 48, .finalizer = 64, .cleared = 4};
  fields.code = {.consts = 24,
                 .names = 32,
                 .varnames = kNoField,
                 .freevars = kNoField,
                 .cellvars = kNoField,
                 .bytecode = 152,
                 .exception_table = 40,
                 .variable_names = 96,
                 .variable_kinds = 104,
                 .cached = kNoField,
                 .variables = 76,
                 .stack_size = 68,
                 .arguments = 56,
                 .keyword_only = 64,
                 .flags = 48};
  return fields;
}

ObjectFields fields_3_12() {
  ObjectFields fields = fields_3_11();
  fields.values_style = ValuesStyle::kOneWord;
  fields.pre_header_flags = (1U << 3U) | (1U << 4U);
  fields.size = {.type = 920, .code = 192, .function = 144, .frame = 120};
  fields.heap_type = {.name = 856, .slots = 864, .qualname = 872, .shared_keys = 880, .module = 888};
  fields.interpreter = {.modules = 944, .dict = 1720, .builtins = 360, .size = 383552, .built_in = 373704};
  fields.thread = {.dict = 112, .context = 208, .async_exception = 128, .exception = 104, .value = 0};
  fields.frame = {.function = 16, .globals = 24, .locals = 40, .object = 48, .stack = 64, .variables = 72};
  fields.generator = {.frame = 72, .state = 67, .exception = 40, .finalizer = 56, .cleared = 4};
  fields.code.bytecode = kNoField;
  fields.code.cached = 152;
  fields.code.variables = 72;
  fields.code.stack_size = 64;
  fields.code.arguments = 52;
  fields.code.keyword_only = 60;
  return fields;
}

ObjectFields fields_3_13() {
  ObjectFields fields = fields_3_12();
  fields.values_style = ValuesStyle::kInside;
  fields.inline_values_flag = 1U << 2U;
  fields.size = {.type = 928, .code = 200, .function = 144, .frame = 136};
  fields.interpreter = {.modules = 7656, .dict = 8448, .builtins = 7648, .size = 194984, .built_in = 182960};
  fields.thread = {.dict = 128, .context = 208, .async_exception = 144, .exception = 120, .value = 0};
  fields.frame_object.data = 64;
  fields.code.cached = 160;
  return fields;
}

ObjectFields fields_3_14() {
  ObjectFields fields = fields_3_13();
  fields.has_tagged_frames = true;
  fields.tuple_items = 32;  // behind its hash
  fields.size = {.type = 936, .code = 208, .function = 152, .frame = 152};
  fields.interpreter = {.modules = 7688, .dict = 8496, .builtins = 7680, .size = 225864, .built_in = 180232};
  fields.frame.variables = 80;
  fields.frame_object.data = 72;
  return fields;
}

ObjectFields fields_3_15() {
  ObjectFields fields = fields_3_14();
  fields.size = {.type = 944, .code = 208, .function = 152, .frame = 152};
  fields.heap_type = {.name = 864, .slots = 872, .qualname = 880, .shared_keys = 888, .module = 896};
  fields.interpreter = {.modules = 7592, .dict = 8448, .builtins = 7584, .size = 226232, .built_in = 180256};
  fields.thread = {.dict = 152, .context = 232, .async_exception = 168, .exception = 144, .value = 0};
  fields.generator.cleared = 5;
  fields.byte_array_extra = 33;  // the buffer is a bytes object
  fields.module = {.definition = kNoField, .state = 24, .state_size = 56};
  return fields;
}

// What free-threaded builds have elsewhere, beside the longer head of objects.
ObjectFields without_gil(ObjectFields fields, unsigned minor) {
  fields.list_head = 8;
  if (minor == 13)
    fields.interpreter = {.modules = 7664, .dict = 8464, .builtins = 7656, .size = 215616, .built_in = 186048};
  if (minor == 14)
    fields.interpreter = {.modules = 7712, .dict = 8536, .builtins = 7704, .size = 249976, .built_in = 186024};
  if (minor == 15)
    fields.interpreter = {.modules = 7592, .dict = 8464, .builtins = 7584, .size = 250328, .built_in = 185992};
  // A number for counts of references by thread, and a table of copies of the bytecode.
  if (minor >= 14) fields.size.type += 8;
  if (minor >= 14) fields.size.code += 8;
  return fields;
}

Result<ObjectFields> fields_of_minor(const Version& version) {
  if (version.major == 3) switch (version.minor) {
      case 9: return fields_3_9();
      case 10: return fields_3_10();
      case 11: return fields_3_11();
      case 12: return fields_3_12();
      case 13: return fields_3_13();
      case 14: return fields_3_14();
      case 15: return fields_3_15();
      default: break;
    }
  return Error{ErrorKind::kUnsupported,
               "Python " + version.text() + " is not supported: Plimsoll knows CPython 3.9 to 3.15"};
}

}  // namespace

Result<ObjectFields> object_fields(const Version& version) {
  Result<ObjectFields> fields = fields_of_minor(version);
  if (!fields.ok() || version.threading == Version::Threading::kGil) return fields;
  return without_gil(fields.value(), version.minor);
}

}  // namespace plimsoll::cpython
