#include "profile/profile.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace plimsoll::profile {

std::string_view Profile::meta_value(std::string_view name) const {
  const auto found = std::find_if(meta.begin(), meta.end(), [&](const auto& entry) { return entry.first == name; });
  return found == meta.end() ? std::string_view{} : std::string_view{found->second};
}

void Profile::set_meta(std::string_view name, std::string_view value) {
  const auto found = std::find_if(meta.begin(), meta.end(), [&](const auto& entry) { return entry.first == name; });
  if (found == meta.end())
    meta.emplace_back(name, value);
  else
    found->second = value;
}

std::int64_t Profile::sampled_ns() const {
  return std::accumulate(samples.weight_ns.begin(), samples.weight_ns.end(), std::int64_t{0});
}

std::int64_t Profile::sampled_cpu_ns() const {
  std::int64_t sum = 0;
  for (std::size_t row = 0; row < samples.size(); ++row)
    if (samples.activity[row] == Activity::kRunning) sum += samples.weight_ns[row];
  return sum;
}

std::size_t Profile::running_samples() const {
  return static_cast<std::size_t>(std::count(samples.activity.begin(), samples.activity.end(), Activity::kRunning));
}

void Profile::put_waits_on_stacks() {
  std::array<FrameId, kActivityCount> frame_of{};
  for (std::size_t row = 0; row < samples.size(); ++row) {
    const Activity activity = samples.activity[row];
    if (activity == Activity::kRunning) continue;
    FrameId& frame = frame_of[static_cast<std::size_t>(activity)];
    if (frame.is_none()) {
      Function function;
      function.name = strings.intern("[" + std::string(text(activity)) + "]");
      function.kind = FunctionKind::kSynthetic;
      frame = frames.intern(Frame{functions.intern(function), 0, 0});
    }
    samples.stack[row] = stacks.intern(StackNode{samples.stack[row], frame});
  }
}

FunctionId Profile::leaf_function(StackId stack) const {
  return stack.is_none() ? FunctionId{} : frames[stacks[stack].frame].function;
}

}  // namespace plimsoll::profile
