// base/write_file.cc: temporary file, then rename.
#include "base/write_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "base/signals_blocked.h"
#include "base/temporary_name.h"
#include "base/unique_fd.h"
#include "base/unkept_file.h"

namespace plimsoll {
namespace {

Error cannot_write(const std::string& path, int errno_value) {
  return system_error("cannot write " + path, errno_value);
}

// Where a chain of symbolic links ends, also if nothing is there; the path itself if it is none.
std::string link_target(std::string path) {
  constexpr int kLongestChain = 40;  // as the kernel's
  for (int links = 0; links < kLongestChain; ++links) {
    char target[PATH_MAX];
    const ssize_t size = ::readlink(path.c_str(), target, sizeof target);
    if (size <= 0 || size == sizeof target) break;
    const std::string_view next(target, static_cast<std::size_t>(size));
    if (next.front() == '/')
      path = next;
    else
      path.replace(path.rfind('/') + 1, std::string::npos, next);
  }
  return path;
}

// While it lives, a limit of the size of files (ulimit -f) is an error of write(), EFBIG, and not the end of the
// process.
class SizeSignalHeld {
 public:
  SizeSignalHeld() = default;
  SizeSignalHeld(const SizeSignalHeld&) = delete;
  SizeSignalHeld& operator=(const SizeSignalHeld&) = delete;
  ~SizeSignalHeld() {
    if (blocked_.were_blocked(SIGXFSZ)) return;
    sigset_t signal;
    ::sigemptyset(&signal);
    ::sigaddset(&signal, SIGXFSZ);
    const timespec now{};
    while (::sigtimedwait(&signal, nullptr, &now) > 0) {
    }
  }

 private:
  const SignalsBlocked blocked_{SIGXFSZ};
};

Status write_in_place(const std::string& path, std::string_view bytes) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd.is_open()) return cannot_write(path, errno);
  if (const int error = write_all(fd.get(), bytes); error != 0) return cannot_write(path, error);
  return Ok{};
}

}  // namespace

int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written >= 0) bytes.remove_prefix(static_cast<std::size_t>(written));
    if (written < 0 && errno != EINTR) return errno;
  }
  return 0;
}

Status write_file(const std::string& path, std::string_view bytes) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0) {
    if (S_ISDIR(facts.st_mode)) return Error{ErrorKind::kUsage, path + " is a directory; name a file in it"};
    if (!S_ISREG(facts.st_mode)) return write_in_place(path, bytes);
  } else if (errno == ELOOP) {
    return cannot_write(path, ELOOP);
  }
  const std::string target = link_target(path);
  std::string temporary = temporary_name(target);
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));  // mode 0600
  if (!fd.is_open()) return cannot_write(path, errno);
  UnkeptFile guard(temporary);
  const SizeSignalHeld held;
  if (const int error = write_all(fd.get(), bytes); error != 0) return cannot_write(path, error);
  // Some file systems tell only now that the disk is full.
  if (::close(fd.release()) != 0) return cannot_write(path, errno);
  if (::rename(temporary.c_str(), target.c_str()) != 0) return cannot_write(path, errno);
  guard.keep();
  return Ok{};
}

}  // namespace plimsoll
