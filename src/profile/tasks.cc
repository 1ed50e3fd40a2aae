#include "profile/tasks.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <string_view>
#include <vector>

namespace plimsoll::profile {
namespace {

constexpr std::string_view kTag = "task_path";
constexpr std::string_view kSeparator = " / ";  // as in python/plimsoll/_tasks.py

// Whether what this function calls is a step of a task: asyncio's Handle._run, or for a task that begins at once,
// before the one that makes it goes on, our own create_task.
bool calls_steps(const Profile& profile, const Function& function) {
  const std::string_view name = profile.strings[function.name];
  const std::string_view file = profile.strings[function.file];
  return (file.ends_with("/asyncio/events.py") && (name == "Handle._run" || name == "_run")) ||
         (file.ends_with("/plimsoll/_tasks.py") && name.ends_with("create_task"));
}

// Stacks with tasks at their roots, each made once.
class TaskStacks {
 public:
  explicit TaskStacks(Profile& profile) : profile_(profile) {
    for (const TagSet& tags : profile.tag_sets.rows()) roots_.push_back(root_of(tags));
    for (const Function& function : profile.functions.rows()) calls_steps_.push_back(calls_steps(profile, function));
  }

  // The stack of a sample with these tags.
  StackId of(StackId stack, TagSetId tags) {
    const StackId root = tags.is_none() ? StackId{} : roots_[tags.index()];
    if (root.is_none()) return stack;
    const std::uint64_t key = std::uint64_t{stack.index()} << 32U | root.index();
    const auto [position, inserted] = known_.try_emplace(key);
    if (inserted) position->second = moved(stack, root);
    return position->second;
  }

 private:
  // The frames of a path; none if there is no path.
  StackId root_of(const TagSet& tags) {
    const auto tag =
        std::find_if(tags.begin(), tags.end(), [&](const Tag& one) { return profile_.strings[one.name] == kTag; });
    if (tag == tags.end()) return {};
    StackId root;
    std::string_view rest = profile_.strings[tag->value];
    while (!rest.empty()) {
      const std::size_t end = rest.find(kSeparator);
      Function function;
      function.name = profile_.strings.intern("[task " + std::string(rest.substr(0, end)) + "]");
      function.kind = FunctionKind::kSynthetic;
      const FrameId frame = profile_.frames.intern(Frame{profile_.functions.intern(function), 0, 0});
      root = profile_.stacks.intern(StackNode{root, frame});
      rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + kSeparator.size());
    }
    return root;
  }

  StackId moved(StackId stack, StackId root) {
    std::vector<FrameId> frames;  // innermost first, up to the one that calls the step
    for (StackId at = stack; !at.is_none(); at = profile_.stacks[at].parent) {
      const FrameId frame = profile_.stacks[at].frame;
      if (calls_steps_[profile_.frames[frame].function.index()]) break;
      frames.push_back(frame);
    }
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
      root = profile_.stacks.intern(StackNode{root, *frame});
    return root;
  }

  Profile& profile_;
  std::vector<StackId> roots_;     // by TagSetId
  std::vector<bool> calls_steps_;  // by FunctionId
  boost::unordered_flat_map<std::uint64_t, StackId> known_;
};

}  // namespace

void put_tasks_on_stacks(Profile& profile) {
  if (profile.tag_sets.size() == 0) return;
  const bool has_awaiting = !profile.meta_value("task_stacks").empty();
  if (has_awaiting) return;
  TaskStacks stacks(profile);
  for (std::size_t row = 0; row < profile.samples.size(); ++row)
    profile.samples.stack[row] = stacks.of(profile.samples.stack[row], profile.samples.tags[row]);
  for (AllocationTable* table : {&profile.allocations, &profile.peak_allocations})
    for (AllocationRow& row : *table) row.stack = stacks.of(row.stack, row.tags);
}

}  // namespace plimsoll::profile
