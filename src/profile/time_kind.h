// profile/time_kind.h: which time the samples of a profile have.
#pragma once

#include "profile/profile.h"

namespace plimsoll::profile {

// Whether what was sampled of running threads is known to be CPU time. Other tools record all time without saying what
// of it was spent on a CPU, or do not say what they record.
inline bool is_cpu_time(const Profile& profile) {
  if (profile.has_waits()) return true;
  const std::string_view mode = profile.meta_value("mode");
  const bool is_foreign = !profile.meta_value("format").empty();
  return is_foreign ? mode == "cpu" || mode == "gil" : mode != "wall";
}

}  // namespace plimsoll::profile
