#include "cli/output_path.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <ctime>
#include <filesystem>

#include "base/unique_fd.h"

namespace plimsoll::cli {

namespace {

// The first path of those that are named after it which suits.
template <typename Suits>
std::string first_path(const std::string& name, std::string_view ending, Suits suits) {
  const std::string stem = fmt::format("{}-{:%Y%m%d-%H%M%S}", name, fmt::localtime(std::time(nullptr)));
  std::string path = fmt::format("{}{}", stem, ending);
  for (int number = 2; !suits(path); ++number) path = fmt::format("{}-{}{}", stem, number, ending);
  return path;
}

}  // namespace

std::string new_profile_path(const std::string& name, std::string_view ending) {
  std::error_code error;
  return first_path(name, ending, [&](const std::string& path) { return !std::filesystem::exists(path, error); });
}

std::string take_profile_path(const std::string& name, std::string_view ending) {
  return first_path(name, ending, [](const std::string& path) {
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    return file.is_open() || errno != EEXIST;
  });
}

Result<std::string> absolute_path(const std::string& path) {
  std::error_code error;
  std::string whole = std::filesystem::absolute(path, error).string();
  if (!error) return whole;
  return system_error(fmt::format("the current directory, where {} is to be", path), error.value());
}

Status check_not_input(const std::string& output, const std::string& input) {
  struct stat out {
  }, in{};
  if (input == "-" || ::stat(output.c_str(), &out) != 0 || ::stat(input.c_str(), &in) != 0) return Ok{};
  if (out.st_dev != in.st_dev || out.st_ino != in.st_ino) return Ok{};
  return Error{ErrorKind::kUsage, fmt::format("{} is the profile itself; name another file", output)};
}

}  // namespace plimsoll::cli
