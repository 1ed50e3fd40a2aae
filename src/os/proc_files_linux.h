// os/proc_files_linux.h: for the files of this folder only: how files of /proc are read and kept open.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/ids.h"
#include "base/unique_fd.h"

namespace plimsoll::os {

// `process`: 0 for this one.
inline std::string proc_task_path(Tid tid, const char* file, std::int32_t process = 0) {
  const std::string owner = process == 0 ? "self" : std::to_string(process);
  return "/proc/" + owner + "/task/" + std::to_string(static_cast<int>(tid)) + "/" + file;
}

// Reads a small file of /proc whole, in one go, as it may change; empty if it cannot. Few are not small: "status" has
// the numbers of all groups that somebody is in.
inline std::string read_small_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  for (const std::size_t most : {std::size_t{4096}, std::size_t{1} << 16U, std::size_t{1} << 20U}) {
    text.resize(most);
    const ssize_t size = fd.is_open() ? ::pread(fd.get(), text.data(), most, 0) : -1;
    text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    if (text.size() < most) break;
  }
  return text;
}

// Where a link leads; empty if that cannot be told.
inline std::string read_link(const std::string& path) {
  std::array<char, 4096> target;
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  return size > 0 ? std::string(target.data(), static_cast<std::size_t>(size)) : std::string();
}

// The value of a field of /proc/PID/status, from its first character that is no blank to the end of the line.
inline std::string_view status_field(std::string_view status, std::string_view name) {
  const std::size_t at = status.find("\n" + std::string(name) + ":");
  if (at == std::string_view::npos) return {};
  std::string_view value = status.substr(at + name.size() + 2);
  value = value.substr(0, value.find('\n'));
  value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
  return value;
}

// Moves a descriptor to the high end of the table: programs expect the lowest free numbers for themselves, and those
// that use select() cannot use numbers above 1023 at all.
inline UniqueFd move_out_of_the_way(UniqueFd fd) {
  constexpr rlim_t kShare = 4;  // at most the top quarter of the table is ours
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return fd;
  const rlim_t top = std::min<rlim_t>(limit.rlim_cur, 1U << 16U);
  const int moved = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, static_cast<int>(top - top / kShare));
  return moved >= 0 ? UniqueFd(moved) : std::move(fd);
}

}  // namespace plimsoll::os
