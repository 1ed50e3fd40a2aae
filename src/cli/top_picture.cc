#include "cli/top_picture.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/place.h"
#include "cli/units.h"
#include "profile/filter.h"

namespace plimsoll::cli {
namespace {

// Leaves the samples of stacks with a function that is asked for.
void select_stacks(TopPicture& picture, const TopState& state) {
  profile::Profile& profile = picture.live.profile;
  std::vector<bool> functions;
  for (std::size_t i = 0; i < profile.functions.size(); ++i)
    functions.push_back(is_asked_for(picture, FunctionId{i}, state));
  const auto is_in = [&](StackId stack) {
    while (!stack.is_none() && !functions[profile.frames[profile.stacks[stack].frame].function.index()])
      stack = profile.stacks[stack].parent;
    return !stack.is_none();
  };
  profile::SampleTable kept;
  for (std::size_t row = 0; row < profile.samples.size(); ++row)
    if (is_in(profile.samples.stack[row])) kept.push_row(profile.samples, row);
  profile.samples = std::move(kept);
}

}  // namespace

void complete(TopPicture& picture) {
  picture.all_samples = picture.live.profile.samples;
  picture.threads = thread_report(picture.live.profile, 0);
  std::stable_sort(picture.threads.begin(), picture.threads.end(),
                   [](const ThreadRow& a, const ThreadRow& b) { return a.by_activity[0] > b.by_activity[0]; });
}

void select_samples(TopPicture& picture, const TopState& state) {
  profile::Profile& profile = picture.live.profile;
  profile.samples = picture.all_samples;
  profile::Filter asked;
  if (state.time == TopTime::kCpu) asked.activities = {Activity::kRunning};
  profile::filter(profile, asked);
  if (state.subject == TopSubject::kFlame && !state.filter.empty()) select_stacks(picture, state);
}

bool is_asked_for(std::string_view name, std::string_view place, const TopState& state) {
  return state.filter.empty() || profile::contains(name, state.filter) || profile::contains(place, state.filter);
}

bool is_asked_for(const TopPicture& picture, FunctionId function, const TopState& state) {
  const profile::Profile& profile = picture.live.profile;
  return is_asked_for(function_name(profile, function), place_of(profile, function, 0, picture.directory).text, state);
}

bool is_asked_for(const TopPicture& picture, StringId file, const LineWeight& line, const TopState& state) {
  const std::string place = place_in(picture, file, line.line);
  const auto has = [&](FunctionId function) {
    return is_asked_for(function_name(picture.live.profile, function), place, state);
  };
  return has(line.function) || std::any_of(line.others.begin(), line.others.end(), has);
}

std::string place_in(const TopPicture& picture, StringId file, std::uint32_t line) {
  return fmt::format("{}:{}", shown_path(picture.live.profile.strings[file], picture.directory).text, line);
}

std::string_view state_of(const TopPicture& picture, const profile::LiveThread& thread) {
  if (!picture.usage || !thread.is_there) return "ended";
  if (picture.usage->state == 'T' || picture.usage->state == 't') return "stopped";
  return text(thread.now);
}

std::optional<double> gil_percent(const TopPicture& picture) {
  if (picture.live.gil_looks == 0) return std::nullopt;
  return percent_of(static_cast<std::int64_t>(picture.live.gil_held),
                    static_cast<std::int64_t>(picture.live.gil_looks));
}

}  // namespace plimsoll::cli
