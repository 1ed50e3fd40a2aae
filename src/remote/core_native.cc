#include "remote/core_native.h"

#include <algorithm>

#include "capture/loop_calls.h"
#include "native/unwind.h"

namespace plimsoll::remote {
namespace {

constexpr std::size_t kMaxDepth = 10'000;
constexpr std::int64_t kNow = 1;  // nothing changes in a core file

}  // namespace

CoreNativeReader::CoreNativeReader(const CoreFile& core)
    : core_(core),
      modules_(core.image, core.mappings, [&core](const os::Mapping& mapping) { return core.open(mapping.path); }),
      registry_(core.layout, capture::CodeRegistry::Source::kTaught),
      names_(modules_, registry_),
      frames_(kMaxDepth) {
  (void)modules_.refresh(kNow);  // of what is known already, which cannot fail
  if (capture::counts_calls(core.layout)) (void)modules_.follow(core.code_type, capture::kLoopFunction);
}

capture::NativeStack CoreNativeReader::unwind(const native::Registers& registers, Address state) {
  const native::Unwind unwound = native::unwind(core_.image, *modules_.current(), registers, frames_);
  const std::span<const native::NativeFrame> found = std::span(frames_).first(unwound.count);
  capture::RawNative head;
  head.stack_pointer = Address{registers.value[native::kStackPointer]};
  head.count = unwound.count;
  head.stop = unwound.stop;
  Address leaf{};
  if (capture::counts_calls(core_.layout) && !is_null(state) &&
      cpython::current_frame(core_.image, core_.layout, state, leaf))
    head.leaf = capture::find_leaf(core_.image, *modules_.current(), found, leaf);
  return {head, found};
}

bool CoreNativeReader::interleave(const capture::NativeStack& native, std::span<const cpython::PyFrame> walked,
                                  cpython::WalkStop stop) {
  if (capture::counts_calls(core_.layout))
    return capture::interleave_by_calls(native, *modules_.current(), walked, stop, items_);
  return capture::interleave(native, walked, stop, items_);
}

DumpedFrame CoreNativeReader::named(const native::NativeFrame& frame) {
  return native_frame(names_.function(names_.frame_at(frame.instruction, kNow)->code));  // none only of what runs
}

void CoreNativeReader::add(Tid tid, Address state, std::span<const cpython::PyFrame> walked, cpython::WalkStop stop,
                           DumpedThread& thread, const std::function<void(std::size_t)>& add_python) {
  const auto is_it = [&](const CoreThread& each) { return Tid{each.tid} == tid; };
  const auto found = std::find_if(core_.notes.threads.begin(), core_.notes.threads.end(), is_it);
  std::vector<std::size_t> python(walked.size());  // the marks do not count
  std::size_t count = 0;
  for (std::size_t i = 0; i < walked.size(); ++i)
    python[i] = walked[i].position == cpython::kEntryMark ? count : count++;
  if (found == core_.notes.threads.end()) {
    thread.native_problem = "no native frames: the core file does not have its registers";
    for (std::size_t i = 0; i < count; ++i) add_python(i);
    return;
  }
  const capture::NativeStack native = unwind(found->registers, state);
  if (native.head.stop != native::UnwindStop::kComplete)
    thread.native_problem = std::string("native frames further out are missing: ") + native::text(native.head.stop);
  if (interleave(native, walked, stop)) {
    for (const capture::StackItem& item : items_)
      if (item.kind == capture::StackItem::Kind::kNative)
        thread.frames.push_back(named(native.frames[item.index]));
      else
        add_python(python[item.index]);
    return;
  }
  if (thread.native_problem.empty()) thread.native_problem = kCountsDisagree;
  for (std::size_t i = 0; i < count; ++i) add_python(i);
  for (const native::NativeFrame& frame : native.frames) thread.native_frames.push_back(named(frame));
}

}  // namespace plimsoll::remote
