#include "profile/without_native.h"

#include <vector>

namespace plimsoll::profile {

void leave_out_native(Profile& profile) {
  std::vector<StackId> without(profile.stacks.size());
  for (std::size_t i = 0; i < without.size(); ++i) {
    const StackNode node = profile.stacks[StackId{i}];  // a copy, since interning may move the table
    const StackId parent = node.parent.is_none() ? StackId{} : without[node.parent.index()];  // parents come first
    const bool is_native = profile.functions[profile.frames[node.frame].function].kind == FunctionKind::kNative;
    without[i] = is_native ? parent : profile.stacks.intern(StackNode{parent, node.frame});
  }
  for (StackId& stack : profile.samples.stack)
    if (!stack.is_none()) stack = without[stack.index()];
  for (AllocationTable* table : {&profile.allocations, &profile.peak_allocations})
    for (AllocationRow& row : *table)
      if (!row.stack.is_none()) row.stack = without[row.stack.index()];
}

}  // namespace plimsoll::profile
