#include "cli/output_path.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
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

Status check_recording_path(const std::string& path) {
  if (path != "-") return Ok{};
  return Error{
      ErrorKind::kUsage,
      "-o -: what is recorded goes into a file, not to standard output; name one (./- if it is to be called so)"};
}

std::string shell_word(const std::string& path) {
  constexpr std::string_view kPlain = "@%+=:,./-_";
  const auto is_plain = [&](char c) {
    return static_cast<unsigned char>(c) >= 0x80 || std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           kPlain.find(c) != std::string_view::npos;
  };
  const std::string word = (path.starts_with('-') ? "./" : "") + path;
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

Status check_not_input(const std::string& output, const std::string& input) {
  struct stat out {
  }, in{};
  if (input == "-" || ::stat(output.c_str(), &out) != 0 || ::stat(input.c_str(), &in) != 0) return Ok{};
  if (out.st_dev != in.st_dev || out.st_ino != in.st_ino) return Ok{};
  return Error{ErrorKind::kUsage, fmt::format("{} is the profile itself; name another file", output)};
}

}  // namespace plimsoll::cli
