#include "os/available_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>

namespace plimsoll::os {
namespace {

std::string text_of(const std::string& path) {
  const std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The number at the front of a file; none if there is none, or "max".
std::optional<std::uint64_t> number_in(const std::string& path) {
  const std::string text = text_of(path);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  return number;
}

// The number after a name, in a file of lines of both.
std::uint64_t number_after(const std::string& path, const std::string& name) {
  std::istringstream lines(text_of(path));
  std::string word;
  std::string rest;
  for (std::uint64_t number = 0; lines >> word >> number; std::getline(lines, rest))
    if (word == name) return number;
  return 0;
}

// How the files of a version are called.
struct Files {
  const char* limit;
  const char* used;
  const char* inactive;
};

std::uint64_t left_in(const std::string& directory, const Files& files) {
  const auto limit = number_in(directory + "/" + files.limit);
  const auto used = number_in(directory + "/" + files.used);
  if (!limit || !used) return UINT64_MAX;
  const std::uint64_t inactive = std::min(*used, number_after(directory + "/memory.stat", files.inactive));
  return *limit - std::min(*limit, *used - inactive);
}

}  // namespace

std::uint64_t group_memory_left(const std::string& groups, const std::string& root) {
  constexpr Files kSecond{"memory.max", "memory.current", "inactive_file"};
  constexpr Files kFirst{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
  std::uint64_t least = UINT64_MAX;
  std::istringstream lines(groups);
  // "0::/path" of version 2, "9:memory:/path" of version 1.
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool is_second = controllers == ",,";
    if (!is_second && controllers.find(",memory,") == std::string::npos) continue;
    const std::string base = is_second ? root : root + "/memory";
    std::string path = line.substr(second + 1);
    for (;;) {
      if (path == "/") path.clear();
      least = std::min(least, left_in(base + path, is_second ? kSecond : kFirst));
      if (path.empty()) break;
      path.resize(std::min(path.size() - 1, path.rfind('/')));
    }
  }
  return least;
}

std::uint64_t available_memory() {
  constexpr std::uint64_t kUnknown = std::uint64_t{4} << 20U;  // kilobytes, of a kernel that does not say
  const std::uint64_t kilobytes = number_after("/proc/meminfo", "MemAvailable:");
  return std::min((kilobytes == 0 ? kUnknown : kilobytes) * 1024,
                  group_memory_left(text_of("/proc/self/cgroup"), "/sys/fs/cgroup"));
}

std::uint64_t address_space_used() {
  return number_in("/proc/self/statm").value_or(0) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::uint64_t address_space_left() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  return limit.rlim_cur - std::min<std::uint64_t>(limit.rlim_cur, address_space_used());
}

}  // namespace plimsoll::os
