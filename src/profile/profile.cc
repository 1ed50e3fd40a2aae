#include "profile/profile.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace plimsoll::profile {

std::string_view Profile::meta_value(std::string_view name) const {
  const auto found = std::find_if(meta.begin(), meta.end(), [&](const auto& entry) { return entry.first == name; });
  return found == meta.end() ? std::string_view{} : std::string_view{found->second};
}

const Attachment* Profile::attachment(std::string_view name) const {
  const auto found =
      std::find_if(attachments.begin(), attachments.end(), [&](const Attachment& one) { return one.name == name; });
  return found == attachments.end() ? nullptr : &*found;
}

Attachment* Profile::attachment(std::string_view name) {
  return const_cast<Attachment*>(std::as_const(*this).attachment(name));
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

namespace {

// A stretch of samples of one thread with the same tags.
struct TagStretch {
  TagSetId tags;
  std::int64_t start_ns = 0, end_ns = 0;
};

Marker marker_of(const Profile& profile, ThreadId thread, const TagStretch& stretch) {
  Marker marker{stretch.start_ns, stretch.end_ns - stretch.start_ns, thread, "Tags", {}};
  for (const Tag& tag : profile.tag_sets[stretch.tags])
    marker.fields.emplace_back(profile.strings[tag.name], profile.strings[tag.value]);
  return marker;
}

}  // namespace

void Profile::put_tags_into_markers() {
  std::vector<TagStretch> open(threads.size());
  const auto close = [&](std::size_t thread) {
    if (!open[thread].tags.is_none()) markers.push_back(marker_of(*this, ThreadId{thread}, open[thread]));
  };
  for (std::size_t row = 0; row < samples.size(); ++row) {
    const std::size_t thread = samples.thread[row].index();
    TagStretch& stretch = open[thread];
    const std::int64_t time_ns = samples.time_ns[row];
    if (stretch.tags != samples.tags[row]) {
      // The first sample of a stretch stands for time before it, but not for that of the one before.
      const std::int64_t least_ns = std::max<std::int64_t>(stretch.end_ns, 0);
      close(thread);
      stretch = {samples.tags[row], std::clamp(time_ns - samples.weight_ns[row], std::min(least_ns, time_ns), time_ns)};
    }
    stretch.end_ns = time_ns;
  }
  for (std::size_t thread = 0; thread < open.size(); ++thread) close(thread);
}

FunctionId Profile::leaf_function(StackId stack) const {
  return stack.is_none() ? FunctionId{} : frames[stacks[stack].frame].function;
}

}  // namespace plimsoll::profile
