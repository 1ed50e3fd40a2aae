#include "cli/output_path.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <ctime>
#include <filesystem>

namespace plimsoll::cli {

std::string new_profile_path(const std::string& name, std::string_view ending) {
  const std::string stem = fmt::format("{}-{:%Y%m%d-%H%M%S}", name, fmt::localtime(std::time(nullptr)));
  std::string path = fmt::format("{}{}", stem, ending);
  std::error_code error;
  for (int number = 2; std::filesystem::exists(path, error); ++number)
    path = fmt::format("{}-{}{}", stem, number, ending);
  return path;
}

Status check_not_input(const std::string& output, const std::string& input) {
  struct stat out {
  }, in{};
  if (input == "-" || ::stat(output.c_str(), &out) != 0 || ::stat(input.c_str(), &in) != 0) return Ok{};
  if (out.st_dev != in.st_dev || out.st_ino != in.st_ino) return Ok{};
  return Error{ErrorKind::kUsage, fmt::format("{} is the profile itself; name another file", output)};
}

}  // namespace plimsoll::cli
