// os/put_aside.h: whether a thread would have the CPU that we are on if we had not come.
#pragma once

#include <cstdint>
#include <optional>

#include "os/os.h"

namespace plimsoll::os {

// Whether a thread that stands in the queue of the caller's CPU was put aside a moment ago, by that CPU's clock: for
// the caller, who has come there then. None where the kernel does not tell (ThreadProbe::counted_ns).
inline std::optional<bool> was_just_put_aside(const ThreadProbe& thread) {
  constexpr std::int64_t kMoment = 50'000;
  const std::optional<std::int64_t> its = thread.counted_ns();
  const std::optional<std::int64_t> ours = ThreadProbe(current_tid(), ThreadProbe::Keep::kClosed).counted_ns();
  if (!its || !ours) return std::nullopt;
  return *ours - *its < kMoment;
}

// Whether a thread that has used so much CPU time of what has passed since it was looked at last has done nothing but
// compute.
inline bool has_only_computed(std::int64_t used_ns, std::int64_t passed_ns) { return used_ns >= passed_ns / 8 * 7; }

}  // namespace plimsoll::os
