#include "profile/tree.h"

#include <algorithm>
#include <optional>

#include "profile/filter.h"
#include "profile/replace_stacks.h"

namespace plimsoll::profile {
namespace {

// Finds or makes the child of `parent` for (function, line).
class ChildIndex {
 public:
  explicit ChildIndex(Tree& tree) : tree_(tree) {}

  std::size_t child(std::size_t parent, FunctionId function, std::uint32_t line) {
    const Key key{parent, function.index(), line};
    const auto [position, inserted] = index_.try_emplace(key, tree_.nodes.size());
    if (inserted) {
      TreeNode& node = tree_.nodes.emplace_back();
      node.function = function;
      node.line = line;
      tree_.nodes[parent].children.push_back(position->second);
    }
    return position->second;
  }

 private:
  struct Key {
    std::size_t parent;
    std::uint32_t function;
    std::uint32_t line;
    bool operator==(const Key&) const = default;
    friend std::size_t hash_value(const Key& key) {
      return (key.parent * 0x9e3779b97f4a7c15U + key.function) * 0x9e3779b97f4a7c15U + key.line;
    }
  };
  Tree& tree_;
  boost::unordered_flat_map<Key, std::size_t> index_;
};

}  // namespace

Tree tree(const Profile& profile, Granularity granularity) {
  return tree(profile, granularity, weights_of_stacks(profile));
}

Tree tree(const Profile& profile, Granularity granularity, const StackWeights& weights) {
  Tree result;
  result.nodes.emplace_back();
  ChildIndex index(result);

  // A parent's id is smaller than its children's: one pass finds those that something is on, and one in the order of
  // ids gives these their nodes. (Others are left from before a selection, or before stacks were replaced.)
  std::vector<bool> is_used(profile.stacks.size());
  for (std::size_t i = is_used.size(); i-- > 0;) {
    if (i < weights.by_stack.size())
      is_used[i] = is_used[i] || weights.by_stack[i].count != 0 || weights.by_stack[i].weight != 0;
    const StackId parent = profile.stacks.rows()[i].parent;
    if (is_used[i] && !parent.is_none()) is_used[parent.index()] = true;
  }
  std::vector<std::size_t> node_of_stack(profile.stacks.size());
  for (std::size_t i = 0; i < profile.stacks.size(); ++i) {
    if (!is_used[i]) continue;
    const StackNode& stack = profile.stacks.rows()[i];
    const Frame& frame = profile.frames[stack.frame];
    const std::size_t parent = stack.parent.is_none() ? 0 : node_of_stack[stack.parent.index()];
    const std::uint32_t line = granularity == Granularity::kLine ? frame.line : 0;
    node_of_stack[i] = index.child(parent, frame.function, line);
  }
  const auto put = [&](std::size_t node, const StackWeight& weight) {
    result.nodes[node].self_ns += weight.weight;
    result.nodes[node].self_samples += weight.count;
  };
  put(0, weights.no_stack);
  for (std::size_t i = 0; i < weights.by_stack.size(); ++i) put(node_of_stack[i], weights.by_stack[i]);

  // Children have larger indices than their parent: totals add up from the end.
  for (TreeNode& node : result.nodes) {
    node.total_ns = node.self_ns;
    node.samples = node.self_samples;
  }
  for (std::size_t i = result.nodes.size(); i-- > 0;) {
    for (const std::size_t child : result.nodes[i].children) {
      result.nodes[i].total_ns += result.nodes[child].total_ns;
      result.nodes[i].samples += result.nodes[child].samples;
    }
  }
  for (TreeNode& node : result.nodes)
    std::stable_sort(node.children.begin(), node.children.end(),
                     [&](std::size_t a, std::size_t b) { return result.nodes[a].total_ns > result.nodes[b].total_ns; });
  return result;
}

void turn_round(Profile& profile, std::string_view function, std::size_t most_frames) {
  std::vector<bool> is_asked_for;
  is_asked_for.reserve(profile.functions.size());
  for (const Function& each : profile.functions.rows())
    is_asked_for.push_back(contains(profile.strings[each.name], function));
  const auto turned = [&](StackId stack) {
    const auto node_of = [&](StackId id) { return profile.stacks[id]; };  // a copy, since interning may move the table
    while (!stack.is_none() && !is_asked_for[profile.frames[node_of(stack).frame].function.index()])
      stack = node_of(stack).parent;
    StackId result;
    for (std::size_t i = 0; i < most_frames && !stack.is_none(); ++i) {
      const StackNode node = node_of(stack);
      result = profile.stacks.intern(StackNode{result, node.frame});
      stack = node.parent;
    }
    return result;
  };
  // Only of stacks that samples have, of which there are fewer than of parts of stacks.
  std::vector<std::optional<StackId>> known(profile.stacks.size());
  put_stacks(profile, [&](StackId stack) {
    std::optional<StackId>& other = known[stack.index()];
    if (!other) other = turned(stack);
    return *other;
  });
}

void begin_at_file(Profile& profile, std::string_view file) {
  std::vector<bool> is_of_file(profile.stacks.size());  // any frame of it, from the outermost on
  std::vector<StackId> begun(profile.stacks.size());
  for (std::size_t i = 0; i < begun.size(); ++i) {
    const StackNode node = profile.stacks[StackId{i}];  // a copy, since interning may move the table
    const Function& function = profile.functions[profile.frames[node.frame].function];
    const bool has_caller = !node.parent.is_none();
    is_of_file[i] = (has_caller && is_of_file[node.parent.index()]) || profile.strings[function.file] == file;
    if (is_of_file[i])
      begun[i] = profile.stacks.intern(StackNode{has_caller ? begun[node.parent.index()] : StackId{}, node.frame});
  }
  put_stacks(profile, [&](StackId stack) { return is_of_file[stack.index()] ? begun[stack.index()] : stack; });
}

}  // namespace plimsoll::profile
