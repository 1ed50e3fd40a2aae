#include "cli/children.h"

#include <fmt/format.h>
#include <glob.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <utility>

#include "profile/join.h"

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

void report_children(const std::string& plim, Console& console) {
  const std::vector<std::string> children = profiles_of_children(plim);
  if (children.empty()) return;
  constexpr std::size_t kNamed = 4;
  std::string names;
  for (std::size_t i = 0; i < std::min(children.size(), kNamed); ++i) names += " " + children[i];
  if (children.size() > kNamed) names += " ...";
  console.notice(fmt::format("{} of {} own:{}",
                             children.size() == 1 ? "1 child process has a profile"
                                                  : fmt::format("{} child processes have profiles", children.size()),
                             children.size() == 1 ? "its" : "their", names));
  console.notice(fmt::format("all in one: plimsoll show {} --children", plim));
}

void add_children_flag(CLI::App& app, bool& with_children) {
  app.add_flag("--children", with_children, "With the profiles of child processes that lie beside FILE, as one");
}

Result<Input> read_profile(const std::string& path, bool with_children, Console& console) {
  if (with_children && path == "-")
    return Error{ErrorKind::kUsage, "standard input has no child processes' profiles beside it: give a file's name"};
  Result<Input> input = console.read_profile(path);
  if (!input.ok() || !with_children) return input;
  const std::vector<std::string> children = profiles_of_children(path);
  if (children.empty()) console.notice(fmt::format("no child process has a profile beside {}", path));
  for (const std::string& child : children) {
    Result<Input> more = console.read_profile(child);
    const Status joined =
        more.ok() ? join(input.value().profile, std::move(more.value().profile)) : Status(more.error());
    if (joined.ok())
      input.value().file_bytes += more.value().file_bytes;
    else
      console.notice(fmt::format("left out {}: {}", child, joined.error().message));
  }
  return input;
}

}  // namespace plimsoll::cli
