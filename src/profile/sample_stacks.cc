#include "profile/sample_stacks.h"

#include <algorithm>

namespace plimsoll::profile {

void SampleStacks::code(capture::CodeId id, const cpython::CodeInfo& info) {
  Function function;
  function.name = profile_.strings.intern(info.name);
  function.file = profile_.strings.intern(info.file);
  function.first_line = static_cast<std::uint32_t>(std::max(info.first_line, 0));
  // What stands for an asyncio task has no code (capture/task_names.h).
  if (info.file.empty() && info.first_line == 0 && info.name.starts_with('[')) function.kind = FunctionKind::kSynthetic;
  codes_[id] = {profile_.functions.intern(function)};
}

void SampleStacks::native_function(capture::CodeId id, const capture::NativeFunction& native) {
  Function function;
  function.name = profile_.strings.intern(native.name);
  function.file = profile_.strings.intern(native.file);
  function.kind = FunctionKind::kNative;
  codes_[id] = {profile_.functions.intern(function), true, native.start};
  const Module module{native.file, native.build_id};
  if (!native.file.empty() &&
      std::find(profile_.modules.begin(), profile_.modules.end(), module) == profile_.modules.end())
    profile_.modules.push_back(module);
}

void SampleStacks::forget() {
  codes_.clear();
  last_.clear();
}

FrameId SampleStacks::frame_of(const capture::SampleFrame& frame) {
  const Code& code = codes_[frame.code];
  if (!code.is_native) return profile_.frames.intern(Frame{code.function, frame.at.line, frame.at.column});
  const std::uint64_t address = code.start == 0 ? 0 : code.start + frame.at.line;
  return profile_.frames.intern(Frame{code.function, 0, 0, {}, address});
}

StackId SampleStacks::synthetic_root(const char* name) {
  Function function;
  function.name = profile_.strings.intern(name);
  function.kind = FunctionKind::kSynthetic;
  const FrameId frame = profile_.frames.intern(Frame{profile_.functions.intern(function), 0, 0});
  return profile_.stacks.intern(StackNode{StackId{}, frame});
}

StackId SampleStacks::of(const capture::Sample& sample) {
  if (!sample.has_python && sample.frames.empty()) return native_thread();
  if (sample.frames.empty()) return without_python();
  const StackId root = sample.is_truncated ? too_deep() : StackId{};
  Last& last = last_[sample.thread.index()];
  std::size_t common = 0;
  if (last.root == root)
    while (common < last.frames.size() && common < sample.frames.size() && last.frames[common] == sample.frames[common])
      ++common;
  last.root = root;
  last.frames.assign(sample.frames.begin(), sample.frames.end());
  last.stacks.resize(sample.frames.size());
  StackId stack = common == 0 ? root : last.stacks[common - 1];
  for (std::size_t i = common; i < sample.frames.size(); ++i) {
    stack = on_top(stack, sample.frames[i]);
    last.stacks[i] = stack;
  }
  return stack;
}

}  // namespace plimsoll::profile
