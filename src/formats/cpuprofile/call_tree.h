// formats/cpuprofile/call_tree.h: nodes that know their parent -> stacks. What V8's profiles and Chrome's traces share.
#pragma once

#include <boost/json.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <optional>

#include "formats/foreign.h"

namespace plimsoll::formats::cpuprofile {

// A call tree in any order, whose nodes may come while its stacks are asked for already.
class CallTree {
 public:
  using NodeId = std::int64_t;

  // `out` takes the frames and stacks, and must outlive the tree.
  explicit CallTree(ForeignProfile& out) : out_(&out) {}

  // A node as V8 writes it: id, callFrame, and children or parent. What has no id is no node.
  void add(const boost::json::value& node);
  void add(NodeId id, const ForeignFrame& frame, std::optional<NodeId> parent);

  // The frames from the root to a node. Empty for nodes that are not there, and for those in a circle.
  StackId stack_of(std::optional<NodeId> node);

 private:
  // A node of the call tree.
  struct Node {
    FrameId frame;
    std::optional<NodeId> parent;
    std::optional<StackId> stack;
  };
  ForeignProfile* out_;
  boost::unordered_flat_map<NodeId, Node> nodes_;
};

}  // namespace plimsoll::formats::cpuprofile
