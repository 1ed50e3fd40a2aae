// profile/stack_table.h: stacks as a prefix tree, after the callTraceStorage idea: a whole stack is one 32-bit id.
#pragma once

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <vector>

#include "base/growing_array.h"
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

// Nodes, each stored once and named in order of first appearance. A recording comes by ever new ones while the program
// waits: so a node is found in the list of those on top of its parent, which were mostly made soon after it, and not in
// a hash table, whose places are all over a memory that is copied when it grows. Of wide ones only the first few are
// listed, and the others are in such a table.
class StackTable {
 public:
  StackId intern(const StackNode& node) {
    std::uint32_t at = node.parent.is_none() ? first_root_ : links_[node.parent.index()].first;
    const std::uint32_t first = at;
    unsigned count = 0;
    for (; at != 0; at = links_[at - 1].next, ++count)
      if (rows_[at - 1].frame == node.frame) return StackId{at - 1};
    const auto made = static_cast<std::uint32_t>(rows_.size()) + 1;
    if (count == kListed) {
      const auto [found, is_new] = unlisted_.try_emplace(node, made);
      if (!is_new) return StackId{found->second - 1};
    }
    rows_.push_back(node);
    links_.push_back({});
    if (count == kListed) return StackId{made - 1};
    links_.back().next = first;
    (node.parent.is_none() ? first_root_ : links_[node.parent.index()].first) = made;
    return StackId{made - 1};
  }
  [[nodiscard]] const StackNode& operator[](StackId id) const { return rows_[id.index()]; }
  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  [[nodiscard]] const GrowingArray<StackNode>& rows() const { return rows_; }
  // Bytes of memory in use, nearly.
  [[nodiscard]] std::size_t memory() const {
    return rows_.memory() + links_.memory() +
           unlisted_.bucket_count() * (sizeof(std::pair<StackNode, std::uint32_t>) + 1);
  }

 private:
  static constexpr unsigned kListed = 8;
  // 1 + numbers of nodes; 0: none.
  struct Links {
    std::uint32_t first = 0;  // on top of it
    std::uint32_t next = 0;   // on top of what this is on top of
  };

  GrowingArray<StackNode> rows_;
  GrowingArray<Links> links_;
  std::uint32_t first_root_ = 0;
  boost::unordered_flat_map<StackNode, std::uint32_t, boost::hash<StackNode>> unlisted_;
};

// The frames of a stack, root (outermost call) first.
inline std::vector<FrameId> frames_of(const StackTable& stacks, StackId stack) {
  std::vector<FrameId> frames;
  for (StackId at = stack; !at.is_none(); at = stacks[at].parent) frames.push_back(stacks[at].frame);
  std::reverse(frames.begin(), frames.end());
  return frames;
}

}  // namespace plimsoll::profile
