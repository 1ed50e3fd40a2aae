// formats/cpuprofile/reader.cc: nodes of a call tree, then the node of each sample.
#include "formats/cpuprofile/reader.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <optional>
#include <vector>

#include "formats/foreign.h"
#include "formats/json_values.h"

namespace plimsoll::formats::cpuprofile {
namespace {

namespace json = boost::json;

constexpr double kMicrosecond = 1'000;

// Fills a Profile from a file.
class Reader {
 public:
  Result<profile::Profile> read(const json::value& file) {
    const json::array* nodes = array_member(&file, "nodes");
    const json::array* samples = array_member(&file, "samples");
    if (nodes == nullptr || samples == nullptr)
      return Error{ErrorKind::kBadInput, "a .cpuprofile without nodes or samples"};
    for (const json::value& node : *nodes) add_node(node);
    const json::array* deltas = array_member(&file, "timeDeltas");
    const ThreadId thread = out_.thread("", "");
    for (std::size_t row = 0; row < samples->size(); ++row) {
      // A delta is the time since the sample before, and so the sample before lasted until then.
      const double weight = number_of(element(deltas, row + 1)).value_or(0);
      out_.sample(thread, stack_of((*samples)[row]), nanoseconds_of(weight, kMicrosecond));
    }
    return out_.take();
  }

 private:
  // A node of the call tree. Lines count from 0 in this format.
  struct Node {
    FrameId frame;
    std::optional<std::int64_t> parent;
    std::optional<StackId> stack;
  };

  void add_node(const json::value& value) {
    const std::optional<std::int64_t> id = integer_of(member(&value, "id"));
    if (!id) return;
    const json::value* call = member(&value, "callFrame");
    const std::string_view name = text_member(call, "functionName");
    Node& node = nodes_[*id];
    if (name != "(root)")
      node.frame = out_.frame({.name = name.empty() ? "(anonymous)" : name,
                               .file = text_member(call, "url"),
                               .first_line = integer_of(member(call, "lineNumber")).value_or(-1) + 1});
    if (const json::array* children = array_member(&value, "children"))
      for (const json::value& child : *children)
        if (const std::optional<std::int64_t> child_id = integer_of(&child)) nodes_[*child_id].parent = id;
    if (const std::optional<std::int64_t> parent = integer_of(member(&value, "parent"))) nodes_[*id].parent = parent;
  }

  // Not by recursion: a hostile tree is as deep as its file is long, and may be a circle.
  StackId stack_of(const json::value& sample) {
    std::vector<Node*> path;
    std::optional<std::int64_t> at = integer_of(&sample);
    while (at && path.size() <= nodes_.size()) {
      const auto found = nodes_.find(*at);
      if (found == nodes_.end() || found->second.stack) break;
      path.push_back(&found->second);
      at = found->second.parent;
    }
    StackId stack;
    if (path.size() > nodes_.size()) {  // a circle: none of them has a stack
      for (Node* node : path) node->stack = stack;
      return stack;
    }
    if (at)
      if (const auto found = nodes_.find(*at); found != nodes_.end()) stack = found->second.stack.value_or(StackId{});
    for (auto node = path.rbegin(); node != path.rend(); ++node) {
      stack = out_.push(stack, (*node)->frame);
      (*node)->stack = stack;
    }
    return stack;
  }

  ForeignProfile out_{"cpuprofile"};
  boost::unordered_flat_map<std::int64_t, Node> nodes_;
};

}  // namespace

bool is_cpuprofile(std::string_view bytes) {
  return is_json_with(bytes, "\"nodes\"") && is_json_with(bytes, "\"callFrame\"");
}

Result<profile::Profile> read(std::string_view bytes) { return read_json_with<Reader>(bytes); }

}  // namespace plimsoll::formats::cpuprofile
