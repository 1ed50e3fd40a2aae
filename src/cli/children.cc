#include "cli/children.h"

#include <glob.h>
#include <sys/stat.h>

#include <charconv>
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

// 0 where there is something else than a number.
std::int64_t number(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc{} && end == digits.data() + digits.size() ? value : 0;
}

// A process's number, 123, also of 123-2: of what it became by exec. 0 where there is something else.
std::int64_t pid_in_part(std::string_view part) {
  const std::size_t dash = part.find('-');
  if (dash != std::string_view::npos && number(part.substr(dash + 1)) == 0) return 0;
  return number(part.substr(0, dash));
}

}  // namespace

std::int64_t pid_of_child(const std::string& child) {
  const std::filesystem::path name = std::filesystem::path(child).filename();
  const std::string inner = name.stem().extension().string();  // ".123" of app.123.plim
  const std::string last = name.extension().string();          // likewise of a name without another extension
  const std::int64_t pid = inner.empty() ? 0 : pid_in_part(std::string_view(inner).substr(1));
  return pid != 0 || last.empty() ? pid : pid_in_part(std::string_view(last).substr(1));
}

std::vector<std::string> profiles_of_children(const std::string& plim, std::string_view ending) {
  // As _session_facts.path_with_pid names them.
  const std::filesystem::path path(plim);
  const std::string before = (path.parent_path() / path.stem()).string() + ".";
  const std::string after = path.extension().string();
  const std::string pattern = escaped(before) + "[0-9]*" + escaped(after) + escaped(ending);
  std::vector<std::string> found_paths;
  glob_t found{};
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
    for (std::size_t i = 0; i < found.gl_pathc; ++i) {
      const std::string_view file(found.gl_pathv[i]);
      const std::string_view child = file.substr(0, file.size() - ending.size());
      if (pid_in_part(child.substr(before.size(), child.size() - before.size() - after.size())) != 0)
        found_paths.emplace_back(child);
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
