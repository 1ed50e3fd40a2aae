// formats/cpuprofile/call_tree.cc: from a node to its root, and the stacks on the way back.
#include "formats/cpuprofile/call_tree.h"

#include <vector>

#include "formats/json_values.h"

namespace plimsoll::formats::cpuprofile {

namespace json = boost::json;

void CallTree::add(const json::value& node) {
  const std::optional<NodeId> id = integer_of(member(&node, "id"));
  if (!id) return;
  const json::value* call = member(&node, "callFrame");
  const std::string_view name = text_member(call, "functionName");
  Node& row = nodes_[*id];
  if (name != "(root)")  // lines count from 0 in this format
    row.frame = out_->frame({.name = name.empty() ? "(anonymous)" : name,
                             .file = text_member(call, "url"),
                             .first_line = integer_of(member(call, "lineNumber")).value_or(-1) + 1});
  if (const std::optional<NodeId> parent = integer_of(member(&node, "parent"))) row.parent = parent;
  if (const json::array* children = array_member(&node, "children"))
    for (const json::value& child : *children)
      if (const std::optional<NodeId> child_id = integer_of(&child)) nodes_[*child_id].parent = id;
}

void CallTree::add(NodeId id, const ForeignFrame& frame, std::optional<NodeId> parent) {
  nodes_[id] = {out_->frame(frame), parent, {}};
}

// Not by recursion: a hostile tree is as deep as its file is long, and may be a circle.
StackId CallTree::stack_of(std::optional<NodeId> node) {
  std::vector<Node*> path;
  while (node && path.size() <= nodes_.size()) {
    const auto found = nodes_.find(*node);
    if (found == nodes_.end() || found->second.stack) break;
    path.push_back(&found->second);
    node = found->second.parent;
  }
  StackId stack;
  if (path.size() > nodes_.size()) {  // a circle: none of them has a stack
    for (Node* one : path) one->stack = stack;
    return stack;
  }
  if (node)
    if (const auto found = nodes_.find(*node); found != nodes_.end()) stack = found->second.stack.value_or(StackId{});
  for (auto one = path.rbegin(); one != path.rend(); ++one) {
    stack = out_->push(stack, (*one)->frame);
    (*one)->stack = stack;
  }
  return stack;
}

}  // namespace plimsoll::formats::cpuprofile
