#include "profile/without_native.h"

#include <functional>
#include <string>
#include <vector>

namespace plimsoll::profile {
namespace {

// Puts other stacks in the place of those that samples and allocations have.
void replace_stacks(Profile& profile, const std::function<StackId(StackId)>& other) {
  for (StackId& stack : profile.samples.stack)
    if (!stack.is_none()) stack = other(stack);
  for (AllocationTable* table : {&profile.allocations, &profile.peak_allocations})
    for (AllocationRow& row : *table)
      if (!row.stack.is_none()) row.stack = other(row.stack);
}

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
  std::vector<StackId> without(profile.stacks.size());
  for (std::size_t i = 0; i < without.size(); ++i) {
    const StackNode node = profile.stacks[StackId{i}];  // a copy, since interning may move the table
    const StackId parent = node.parent.is_none() ? StackId{} : without[node.parent.index()];  // parents come first
    const bool is_native = profile.functions[profile.frames[node.frame].function].kind == FunctionKind::kNative;
    without[i] = is_native ? parent : profile.stacks.intern(StackNode{parent, node.frame});
  }
  replace_stacks(profile, [&](StackId stack) { return without[stack.index()]; });
}

void fold_native(Profile& profile, std::string_view interpreter) {
  std::vector<Folded> folded(profile.stacks.size());
  for (std::size_t i = 0; i < folded.size(); ++i) {
    const StackNode node = profile.stacks[StackId{i}];
    const Folded parent = node.parent.is_none() ? Folded{} : folded[node.parent.index()];
    folded[i] = with_frame(profile, parent, node.frame, interpreter);
  }
  replace_stacks(profile, [&](StackId stack) {
    const Folded& found = folded[stack.index()];
    return found.has_python ? found.inside : found.whole;
  });
}

void fold_native(Profile& profile) { fold_native(profile, std::string(profile.meta_value("native"))); }

}  // namespace plimsoll::profile
