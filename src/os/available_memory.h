// os/available_memory.h: how much memory this process may still take.
#pragma once

#include <cstdint>
#include <string>

namespace plimsoll::os {

// What the machine could give without putting others into swap, and what the limits of our control groups leave: the
// least of these. In bytes.
std::uint64_t available_memory();

// How many bytes of addresses this process has mapped; 0 if that is not known.
std::uint64_t address_space_used();

// How many bytes of addresses this process may still map until it comes to its limit (RLIMIT_AS); UINT64_MAX if there
// is none.
std::uint64_t address_space_left();

// What the control groups named in `groups` (the text of /proc/self/cgroup) leave, by the files below `root`
// (/sys/fs/cgroup), of version 2 and 1: the least of a group and of all above it. File pages that nobody has used
// lately do not count, as the kernel takes them back. UINT64_MAX if there is no limit.
std::uint64_t group_memory_left(const std::string& groups, const std::string& root);

}  // namespace plimsoll::os
