#include "base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

namespace plimsoll {

namespace {

UniqueFd open_if_regular(const std::string& path, int flags) {
  const UniqueFd place(::open(path.c_str(), O_PATH | O_CLOEXEC | flags));
  struct stat facts {};
  if (!place.is_open() || ::fstat(place.get(), &facts) != 0) return {};
  if (!S_ISREG(facts.st_mode)) {
    errno = EINVAL;
    return {};
  }
  UniqueFd file(::open(("/proc/self/fd/" + std::to_string(place.get())).c_str(), O_RDONLY | O_CLOEXEC));
  // Where there is no /proc, by its name: what took the file's place meanwhile is opened, but not waited for.
  if (!file.is_open() && errno == ENOENT)
    file.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags));
  return file;
}

}  // namespace

UniqueFd open_regular_file(const std::string& path) { return open_if_regular(path, 0); }
UniqueFd open_regular_file_nofollow(const std::string& path) { return open_if_regular(path, O_NOFOLLOW); }

Result<RegularFile> RegularFile::open(const std::string& path) {
  UniqueFd fd = open_regular_file(path);
  if (!fd.is_open() && errno == EINVAL)
    return Error{ErrorKind::kBadInput, "cannot read " + path + ": not a regular file"};
  struct stat facts {};
  if (!fd.is_open() || ::fstat(fd.get(), &facts) != 0) {
    Error error = system_error("cannot read " + path, errno);
    if (error.kind != ErrorKind::kPermission) error.kind = ErrorKind::kBadInput;
    return error;
  }
  return RegularFile{std::move(fd), static_cast<std::size_t>(facts.st_size)};
}

}  // namespace plimsoll
