#include "profile/without_native.h"

#include <string>
#include <vector>

#include "profile/replace_stacks.h"

namespace plimsoll::profile {
namespace {

// What becomes of a stack.
struct Folded {
  StackId whole;   // without anything of what called Python first left out
  StackId inside;  // without what called Python first; none if Python was not called
  bool has_python = false;
  StringId library;  // whose native frame is the innermost; none: it is of Python, or of the interpreter
};

// `parent` with one more frame on it.
Folded with_frame(Profile& profile, const Folded& parent, FrameId frame, std::string_view interpreter) {
  const Function function = profile.functions[profile.frames[frame].function];
  Folded folded = parent;
  const bool is_native = function.kind == FunctionKind::kNative;
  folded.library = is_native ? function.file : StringId{};
  folded.has_python = parent.has_python || !is_native;
  if (is_native && !function.file.is_none() && profile.strings[function.file] == interpreter) {
    folded.library = {};
    return folded;
  }
  if (is_native && !function.file.is_none() && function.file == parent.library) return folded;
  folded.whole = profile.stacks.intern(StackNode{parent.whole, frame});
  if (folded.has_python) folded.inside = profile.stacks.intern(StackNode{parent.inside, frame});
  return folded;
}

}  // namespace

void leave_out_native(Profile& profile) {
  replace_frames(profile, [&](StackId parent, FrameId frame) {
    const bool is_native = profile.functions[profile.frames[frame].function].kind == FunctionKind::kNative;
    return is_native ? parent : profile.stacks.intern(StackNode{parent, frame});
  });
}

void fold_native(Profile& profile, std::string_view interpreter) {
  std::vector<Folded> folded(profile.stacks.size());
  for (std::size_t i = 0; i < folded.size(); ++i) {
    const StackNode node = profile.stacks[StackId{i}];
    const Folded parent = node.parent.is_none() ? Folded{} : folded[node.parent.index()];
    folded[i] = with_frame(profile, parent, node.frame, interpreter);
  }
  put_stacks(profile, [&](StackId stack) {
    const Folded& found = folded[stack.index()];
    return found.has_python ? found.inside : found.whole;
  });
}

void fold_native(Profile& profile) { fold_native(profile, std::string(profile.meta_value("native"))); }

}  // namespace plimsoll::profile
