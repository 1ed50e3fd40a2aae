#include "profile/plim_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/new_file.h"
#include "base/write_file.h"

namespace plimsoll::profile {

Result<PlimFile> PlimFile::create(const std::string& path) {
  Result<UniqueFd> opened = begin_new_file(path);
  if (!opened.ok()) return opened.error();
  UniqueFd fd = opened.take();
  // Out of the range that programs expect their own descriptors in.
  constexpr int kFirstDescriptor = 512;
  if (const int moved = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, kFirstDescriptor); moved >= 0) fd.reset(moved);
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0) return system_error("cannot examine " + path, errno);
  return PlimFile(path, std::move(fd), facts.st_dev, facts.st_ino);
}

bool PlimFile::is_ours(int fd) const {
  struct stat facts {};
  return ::fstat(fd, &facts) == 0 && facts.st_dev == device_ && facts.st_ino == inode_;
}

Status PlimFile::reopen_if_lost() {
  if (is_ours(fd_.get())) return Ok{};
  (void)fd_.release();  // whatever has this number now is the program's
  UniqueFd fd(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.is_open())
    return system_error("the program has closed the profile, and it cannot be reopened: " + path_, errno);
  if (!is_ours(fd.get()))
    return Error{ErrorKind::kSystem, "the program has closed the profile and replaced its file: " + path_};
  fd_ = std::move(fd);
  return Ok{};
}

Status PlimFile::append(const std::string& bytes) {
  PLIMSOLL_TRY(reopen_if_lost());
  if (const int error = write_all(fd_.get(), bytes); error != 0) {
    if (::ftruncate(fd_.get(), size_) == 0) ::lseek(fd_.get(), size_, SEEK_SET);
    return system_error("cannot write " + path_, error);
  }
  size_ += static_cast<std::int64_t>(bytes.size());
  return Ok{};
}

}  // namespace plimsoll::profile
