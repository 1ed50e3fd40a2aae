#include "base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

namespace plimsoll {

Result<RegularFile> RegularFile::open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat facts {};
  if (!fd.is_open() || ::fstat(fd.get(), &facts) != 0) {
    Error error = system_error("cannot read " + path, errno);
    if (error.kind != ErrorKind::kPermission) error.kind = ErrorKind::kBadInput;
    return error;
  }
  if (!S_ISREG(facts.st_mode)) return Error{ErrorKind::kBadInput, "cannot read " + path + ": not a regular file"};
  return RegularFile{std::move(fd), static_cast<std::size_t>(facts.st_size)};
}

}  // namespace plimsoll
