// formats/thread_rows.h: the sample table cut into threads, which is how most formats want it.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/profile.h"

namespace plimsoll::formats {

// For each thread, by ThreadId: the rows of its samples in order of time. Linear in the number of samples.
std::vector<std::vector<std::uint32_t>> rows_by_thread(const profile::Profile& profile);

// The sum of the cpu_ns column over some rows.
std::int64_t cpu_ns_of_rows(const profile::Profile& profile, const std::vector<std::uint32_t>& rows);

}  // namespace plimsoll::formats
