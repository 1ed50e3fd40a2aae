#include "cli/top_picture.h"

#include <algorithm>

#include "cli/units.h"
#include "profile/filter.h"

namespace plimsoll::cli {

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
  if (state.subject == TopSubject::kFlame) asked.function = state.filter;
  profile::filter(profile, asked);
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
