#include "cli/children.h"

#include <glob.h>
#include <sys/stat.h>

#include <filesystem>

namespace plimsoll::cli {
namespace {

// As a pattern that only the text itself matches.
std::string escaped(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

}  // namespace

std::vector<std::string> profiles_of_children(const std::string& plim, std::string_view ending) {
  // As _session_facts.path_with_pid names them.
  const std::filesystem::path path(plim);
  const std::string pattern = escaped((path.parent_path() / path.stem()).string()) + ".[0-9]*" +
                              escaped(path.extension().string()) + escaped(ending);
  std::vector<std::string> found_paths;
  glob_t found{};
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
    for (std::size_t i = 0; i < found.gl_pathc; ++i) {
      const std::string_view file(found.gl_pathv[i]);
      found_paths.emplace_back(file.substr(0, file.size() - ending.size()));
    }
  ::globfree(&found);
  return found_paths;
}

std::vector<std::string> profiles_of_children_since(const std::string& plim, std::int64_t start_realtime_ns) {
  std::vector<std::string> children = profiles_of_children(plim);
  std::erase_if(children, [&](const std::string& child) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    struct stat file {};
    return ::stat(child.c_str(), &file) != 0 ||
           file.st_mtim.tv_sec * kSecond + file.st_mtim.tv_nsec < start_realtime_ns;
  });
  return children;
}

}  // namespace plimsoll::cli
