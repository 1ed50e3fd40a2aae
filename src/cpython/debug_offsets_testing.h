// cpython/debug_offsets_testing.h: _Py_DebugOffsets drawn as text, for tests only. No product code may include it.
//
// The drawings are what the interpreters at hand publish, printed in the order of the fields in their headers
// (Include/internal/pycore_runtime.h of 3.13, pycore_debug_offsets.h of 3.14 and 3.15). The free-threaded 3.14 and 3.15
// are those of the GIL builds with the fields moved that the headers move under Py_GIL_DISABLED.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cpython/layout.h"

namespace plimsoll::cpython::testing {

inline constexpr std::string_view kOffsets313 = R"(
  runtime_state: size=283320 finalizing=608 interpreters_head=632
  interpreter_state: size=194968 id=7272 next=7264 threads_head=7344 gc=7400 imports_modules=7656 sysdict=7640
    builtins=7648 ceval_gil=16 gil_runtime_state=7752 gil_runtime_state_enabled=0 gil_runtime_state_locked=7768
    gil_runtime_state_holder=7760
  thread_state: size=304 prev=0 next=8 interp=16 current_frame=72 thread_id=152 native_thread_id=160
    datastack_chunk=232 status=32
  interpreter_frame: size=80 previous=8 executable=0 instr_ptr=56 localsplus=72 owner=70
  code_object: size=208 filename=112 name=120 qualname=128 linetable=136 firstlineno=68 argcount=52
    localsplusnames=96 localspluskinds=104 co_code_adaptive=200
  pyobject: size=16 ob_type=8
  type_object: size=416 tp_name=24 tp_repr=88 tp_flags=168
  tuple_object: size=32 ob_item=24 ob_size=16
  list_object: size=40 ob_item=24 ob_size=16
  dict_object: size=48 ma_keys=32 ma_values=40
  float_object: size=24 ob_fval=16
  long_object: size=32 lv_tag=16 ob_digit=24
  bytes_object: size=40 ob_size=16 ob_sval=32
  unicode_object: size=64 state=32 length=16 asciiobject_size=40
  gc: size=240 collecting=200
)";

inline constexpr std::string_view kOffsets313Free = R"(
  runtime_state: size=328384 finalizing=608 interpreters_head=632
  interpreter_state: size=215616 id=7272 next=7264 threads_head=7344 gc=7400 imports_modules=7664 sysdict=7648
    builtins=7656 ceval_gil=16 gil_runtime_state=7760 gil_runtime_state_enabled=0 gil_runtime_state_locked=7784
    gil_runtime_state_holder=7776
  thread_state: size=312 prev=0 next=8 interp=16 current_frame=72 thread_id=152 native_thread_id=160
    datastack_chunk=232 status=32
  interpreter_frame: size=80 previous=8 executable=0 instr_ptr=56 localsplus=72 owner=70
  code_object: size=224 filename=128 name=136 qualname=144 linetable=152 firstlineno=84 argcount=68
    localsplusnames=112 localspluskinds=120 co_code_adaptive=216
  pyobject: size=32 ob_type=24
  type_object: size=432 tp_name=40 tp_repr=104 tp_flags=184
  tuple_object: size=48 ob_item=40 ob_size=32
  list_object: size=56 ob_item=40 ob_size=32
  dict_object: size=64 ma_keys=48 ma_values=56
  float_object: size=40 ob_fval=32
  long_object: size=48 lv_tag=32 ob_digit=40
  bytes_object: size=56 ob_size=32 ob_sval=48
  unicode_object: size=80 state=48 length=32 asciiobject_size=56
  gc: size=248 collecting=200
)";

inline constexpr std::string_view kOffsets314 = R"(
  runtime_state: size=316616 finalizing=784 interpreters_head=808
  interpreter_state: size=225864 id=7280 next=7272 threads_head=7344 threads_main=7360 gc=7408 imports_modules=7688
    sysdict=7672 builtins=7680 ceval_gil=16 gil_runtime_state=7784 gil_runtime_state_enabled=0
    gil_runtime_state_locked=7800 gil_runtime_state_holder=7792 code_object_generation=7992 tlbc_generation=0
  thread_state: size=832 prev=0 next=8 interp=16 current_frame=72 thread_id=152 native_thread_id=160
    datastack_chunk=232 status=32
  interpreter_frame: size=88 previous=8 executable=0 instr_ptr=56 localsplus=80 owner=74 stackpointer=64
    tlbc_index=0
  code_object: size=216 filename=112 name=120 qualname=128 linetable=136 firstlineno=68 argcount=52
    localsplusnames=96 localspluskinds=104 co_code_adaptive=208 co_tlbc=0
  pyobject: size=16 ob_type=8
  type_object: size=416 tp_name=24 tp_repr=88 tp_flags=168
  tuple_object: size=40 ob_item=32 ob_size=16
  list_object: size=40 ob_item=24 ob_size=16
  set_object: size=200 used=24 table=40 mask=32
  dict_object: size=48 ma_keys=32 ma_values=40
  float_object: size=24 ob_fval=16
  long_object: size=32 lv_tag=16 ob_digit=24
  bytes_object: size=40 ob_size=16 ob_sval=32
  unicode_object: size=64 state=32 length=16 asciiobject_size=40
  gc: size=264 collecting=192
  gen_object: size=160 gi_name=24 gi_iframe=72 gi_frame_state=67
  llist_node: next=0 prev=8
  debugger_support: eval_breaker=24 remote_debugger_support=304 remote_debugging_enabled=8076
    debugger_pending_call=0 debugger_script_path=4 debugger_script_path_size=512
)";

inline constexpr std::string_view kOffsets315 = R"(
  runtime_state: size=346568 finalizing=912 interpreters_head=936
  interpreter_state: size=226240 id=7272 next=7264 threads_head=7336 threads_main=7352 gc=7400 imports_modules=7592
    sysdict=7576 builtins=7584 ceval_gil=16 gil_runtime_state=7736 gil_runtime_state_enabled=0
    gil_runtime_state_locked=7752 gil_runtime_state_holder=7744 code_object_generation=7944 tlbc_generation=0
  thread_state: size=888 prev=0 next=8 interp=16 current_frame=72 base_frame=80 last_profiled_frame=88
    last_profiled_frame_seq=96 thread_id=176 native_thread_id=184 datastack_chunk=256 status=32 holds_gil=36
    gil_requested=40 current_exception=136 exc_state=288
  err_stackitem: exc_value=0
  interpreter_frame: size=88 previous=8 executable=0 instr_ptr=56 localsplus=80 owner=74 stackpointer=64
    tlbc_index=0
  code_object: size=216 filename=112 name=120 qualname=128 linetable=136 firstlineno=68 argcount=52
    localsplusnames=96 localspluskinds=104 co_code_adaptive=208 co_tlbc=0
  pyobject: size=16 ob_type=8
  type_object: size=424 tp_name=24 tp_repr=88 tp_flags=168 tp_basicsize=32 tp_dictoffset=288
  heap_type_object: size=944 ht_cached_keys=888
  tuple_object: size=40 ob_item=32 ob_size=16
  list_object: size=40 ob_item=24 ob_size=16
  set_object: size=200 used=24 table=40 mask=32
  dict_object: size=48 ma_keys=32 ma_values=40
  float_object: size=24 ob_fval=16
  long_object: size=32 lv_tag=16 ob_digit=24
  bytes_object: size=40 ob_size=16 ob_sval=32
  unicode_object: size=64 state=32 length=16 asciiobject_size=40 compactunicodeobject_size=56
  gc: size=176 collecting=112 frame=120 generation_stats_size=1120 generation_stats=104
  gen_object: size=160 gi_name=24 gi_iframe=72 gi_frame_state=67
  llist_node: next=0 prev=8
  debugger_support: eval_breaker=24 remote_debugger_support=344 remote_debugging_enabled=8028
    debugger_pending_call=0 debugger_script_path=4 debugger_script_path_size=512
)";

// The table as named numbers in order, and as bytes.
class DrawnOffsets {
 public:
  DrawnOffsets(std::uint32_t version_hex, std::uint64_t free_threaded, std::string_view drawing)
      : version_(version_hex), free_threaded_(free_threaded) {
    std::istringstream words{std::string(drawing)};
    std::string group;
    for (std::string word; words >> word;) {
      const auto equals = word.find('=');
      if (equals == std::string::npos)
        group = word.substr(0, word.size() - 1);
      else
        fields_.emplace_back(group + "." + word.substr(0, equals), std::stoull(word.substr(equals + 1)));
    }
  }

  // The number called "group.field"; a name that is not there aborts the test.
  std::uint64_t& operator[](std::string_view name) {
    for (auto& [known, value] : fields_)
      if (known == name) return value;
    std::fprintf(stderr, "no field %.*s\n", static_cast<int>(name.size()), name.data());
    std::abort();
  }
  void set_version(std::uint32_t hex) { version_ = hex; }
  void set_free_threaded(std::uint64_t word) { free_threaded_ = word; }
  std::vector<std::pair<std::string, std::uint64_t>>& fields() { return fields_; }

  [[nodiscard]] std::string bytes() const {
    std::string out("xdebugpy");
    const auto put = [&](std::uint64_t word) { out.append(reinterpret_cast<const char*>(&word), sizeof word); };
    put(version_);
    put(free_threaded_);
    for (const auto& [name, value] : fields_) put(value);
    out.resize(kDebugOffsetsSize, '\xab');  // whatever follows in _PyRuntime
    return out;
  }
  [[nodiscard]] Result<Layout> layout() const {
    const std::string table = bytes();
    return layout_from_debug_offsets(reinterpret_cast<const unsigned char*>(table.data()), table.size());
  }

 private:
  std::uint32_t version_;
  std::uint64_t free_threaded_;
  std::vector<std::pair<std::string, std::uint64_t>> fields_;
};

inline DrawnOffsets offsets_3_13() { return {0x030d00f0, 0, kOffsets313}; }
inline DrawnOffsets offsets_3_13t() { return {0x030d0ff0, 1, kOffsets313Free}; }
inline DrawnOffsets offsets_3_14() { return {0x030e0af0, 0, kOffsets314}; }
inline DrawnOffsets offsets_3_15() { return {0x030f02f0, 0, kOffsets315}; }

// What Py_GIL_DISABLED changes: the header of an object is 16 bytes larger, and bytecode is per thread.
inline DrawnOffsets free_threaded(DrawnOffsets offsets) {
  offsets.set_free_threaded(1);
  for (auto& [name, value] : offsets.fields()) {
    const bool is_object = name.find("_object.") != std::string::npos || name.starts_with("pyobject.");
    if (is_object) value += 16;
  }
  offsets["interpreter_frame.tlbc_index"] = 72;
  offsets["interpreter_frame.owner"] = 78;
  offsets["code_object.co_tlbc"] = 232;
  offsets["code_object.co_code_adaptive"] = 240;
  offsets["code_object.size"] = 248;
  return offsets;
}
inline DrawnOffsets offsets_3_14t() { return free_threaded(offsets_3_14()); }
inline DrawnOffsets offsets_3_15t() { return free_threaded(offsets_3_15()); }

}  // namespace plimsoll::cpython::testing
