// remote/core_native.h: the machine code that the threads of a core file were in, between their Python frames.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "capture/code_registry.h"
#include "capture/interleave.h"
#include "capture/native_resolver.h"
#include "native/modules.h"
#include "remote/core_file.h"
#include "remote/dump.h"

namespace plimsoll::remote {

// Registers are those that the notes have; stacks are in the image.
class CoreNativeReader {
 public:
  // `core` must outlive it.
  explicit CoreNativeReader(const CoreFile& core);

  // Fills in the frames of a thread, innermost first. `walked` are its Python frames with marks among them
  // (cpython::EntryMarks), and `add_python` puts the n-th that is no mark behind those that are there. `state` is the
  // thread's in Python, null if it has none.
  void add(Tid tid, Address state, std::span<const cpython::PyFrame> walked, cpython::WalkStop stop,
           DumpedThread& thread, const std::function<void(std::size_t)>& add_python);

 private:
  capture::NativeStack unwind(const native::Registers& registers, Address state);
  bool interleave(const capture::NativeStack& native, std::span<const cpython::PyFrame> walked, cpython::WalkStop stop);
  DumpedFrame named(const native::NativeFrame& frame);

  const CoreFile& core_;
  native::Modules modules_;
  capture::CodeRegistry registry_;
  capture::NativeResolver names_;
  std::vector<native::NativeFrame> frames_;
  std::vector<capture::StackItem> items_;
};

}  // namespace plimsoll::remote
