// cli/write_file.cc: temporary file, then rename.
#include "cli/write_file.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>

#include "base/unique_fd.h"
#include "base/unkept_file.h"

namespace plimsoll::cli {
namespace {

Error cannot_write(const std::string& path, int errno_value) {
  return system_error("cannot write " + path, errno_value);
}

Status write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written >= 0)
      bytes.remove_prefix(static_cast<std::size_t>(written));
    else if (errno != EINTR)
      return cannot_write(path, errno);
  }
  return Ok{};
}

// Where a chain of symbolic links ends; the path itself if it is none, or leads nowhere yet.
std::string link_target(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> target(::realpath(path.c_str(), nullptr), &std::free);
  return target ? std::string(target.get()) : path;
}

Status write_in_place(const std::string& path, std::string_view bytes) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd.is_open()) return cannot_write(path, errno);
  return write_all(fd.get(), bytes, path);
}

}  // namespace

Status write_file(const std::string& path, std::string_view bytes) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0) {
    if (S_ISDIR(facts.st_mode)) return Error{ErrorKind::kUsage, path + " is a directory; name a file in it"};
    if (!S_ISREG(facts.st_mode)) return write_in_place(path, bytes);
  }
  const std::string target = link_target(path);
  std::string temporary = target + ".XXXXXX";
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));  // mode 0600
  if (!fd.is_open()) return cannot_write(path, errno);
  UnkeptFile guard(temporary);
  PLIMSOLL_TRY(write_all(fd.get(), bytes, path));
  // Some file systems tell only now that the disk is full.
  if (::close(fd.release()) != 0) return cannot_write(path, errno);
  if (::rename(temporary.c_str(), target.c_str()) != 0) return cannot_write(path, errno);
  guard.keep();
  return Ok{};
}

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
