#include "profile/process_ends.h"

#include <algorithm>

namespace plimsoll::profile {

ProcessEnds::ProcessEnds(const Profile& profile) : profile_(profile), ends_(profile.processes.size()) {
  // A process ends with the last of its threads that is known.
  for (const Thread& thread : profile.threads)
    if (!thread.process.is_none())
      ends_[thread.process.index()] = std::max(ends_[thread.process.index()], thread.end_ns);
  // The last one is there to the end; and where recordings go on, or were cut short, so are those whose files have been
  // written as late as can be: once a second.
  constexpr std::int64_t kBetweenWrites = 1'500'000'000;
  const std::int64_t last = ends_.empty() ? 0 : *std::max_element(ends_.begin(), ends_.end());
  for (std::int64_t& end : ends_)
    if (end >= last - (profile.complete ? 0 : kBetweenWrites)) end = kNever;
}

}  // namespace plimsoll::profile
