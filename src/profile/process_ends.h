// profile/process_ends.h: when processes ended. What they had is gone then, whether it was freed or not.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "profile/profile.h"

namespace plimsoll::profile {

// The ends of a profile's processes. Of one alone there is none: its end is the profile's.
class ProcessEnds {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  explicit ProcessEnds(const Profile& profile);

  // kNever: it was there to the end.
  [[nodiscard]] std::int64_t of(ProcessId process) const { return process.is_none() ? kNever : ends_[process.index()]; }
  // When the blocks of a row were there no more; kNever if they were to the end.
  [[nodiscard]] std::int64_t of_blocks(const AllocationRow& row) const {
    if (row.freed_ns != AllocationRow::kAlive) return row.freed_ns;
    return row.thread.is_none() ? kNever : of(profile_.threads[row.thread.index()].process);
  }

 private:
  const Profile& profile_;
  std::vector<std::int64_t> ends_;  // by ProcessId
};

}  // namespace plimsoll::profile
