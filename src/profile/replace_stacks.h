// profile/replace_stacks.h: other stacks in the place of those that samples and allocations have.
#pragma once

#include <utility>
#include <vector>

#include "profile/profile.h"

namespace plimsoll::profile {

// `other` is what a stack becomes: StackId -> StackId.
template <typename Other>
void put_stacks(Profile& profile, Other other) {
  for (StackId& stack : profile.samples.stack)
    if (!stack.is_none()) stack = other(stack);
  for (AllocationTable* table : {&profile.allocations, &profile.peak_allocations})
    for (AllocationRow& row : *table)
      if (!row.stack.is_none()) row.stack = other(row.stack);
}

// Frame by frame: `put` adds to a new stack what a frame becomes, (StackId parent, FrameId) -> StackId.
template <typename Put>
void replace_frames(Profile& profile, Put put) {
  std::vector<StackId> changed(profile.stacks.size());
  for (std::size_t i = 0; i < changed.size(); ++i) {
    const StackNode node = profile.stacks[StackId{i}];  // a copy, since interning may move the table
    changed[i] =
        put(node.parent.is_none() ? StackId{} : changed[node.parent.index()], node.frame);  // parents are first
  }
  put_stacks(profile, [&](StackId stack) { return changed[stack.index()]; });
}

}  // namespace plimsoll::profile
