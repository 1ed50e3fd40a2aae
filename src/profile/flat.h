// profile/flat.h: CPU time per function and per line, independent of who called.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/profile.h"

namespace plimsoll::profile {

// One function, or one line of one. A sample counts once towards the total of each function (line) on its stack,
// however often it occurs there, so recursion is not counted twice.
struct FlatRow {
  FunctionId function;
  std::uint32_t line = 0;  // in line tables; else 0
  std::int64_t self_ns = 0;
  std::int64_t total_ns = 0;
  std::uint64_t self_samples = 0;
  std::uint64_t total_samples = 0;
};

// Per function, ordered by self time, then by total, heaviest first.
std::vector<FlatRow> flat(const Profile& profile);

// Per (function, line) that occurs on a stack, in the same order.
std::vector<FlatRow> lines(const Profile& profile);

}  // namespace plimsoll::profile
