// profile/stack_table.h: stacks as a prefix tree, after the callTraceStorage idea: a whole stack is one 32-bit id.
#pragma once

#include <algorithm>
#include <vector>

#include "profile/frame_table.h"

namespace plimsoll::profile {

// One node: the frame on top of its parent stack. parent none = the frame is a root (the outermost call).
// A parent's id is always smaller than its children's.
struct StackNode {
  StackId parent;
  FrameId frame;
  bool operator==(const StackNode&) const = default;
};

inline std::size_t hash_value(const StackNode& node) {
  return std::size_t{node.parent.index()} * 0x9e3779b97f4a7c15U + node.frame.index();
}

using StackTable = InternTable<StackNode, StackId>;

// The frames of a stack, root (outermost call) first.
inline std::vector<FrameId> frames_of(const StackTable& stacks, StackId stack) {
  std::vector<FrameId> frames;
  for (StackId at = stack; !at.is_none(); at = stacks[at].parent) frames.push_back(stacks[at].frame);
  std::reverse(frames.begin(), frames.end());
  return frames;
}

}  // namespace plimsoll::profile
