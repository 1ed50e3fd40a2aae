#include "base/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace plimsoll {
namespace {

// When a file takes the place of an old one.
enum class Takes : std::uint8_t { kNow, kLater };

// A new file for the place of the one at `path`; not open if that cannot be.
Replacement put_in_place_of(const std::string& path, Takes when) {
  std::string temporary = path + ".XXXXXX";
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));  // mode 0600
  if (!fd.is_open()) return {};
  if (when == Takes::kLater) return {std::move(fd), std::move(temporary)};
  if (::rename(temporary.c_str(), path.c_str()) == 0) return {std::move(fd), path};
  ::unlink(temporary.c_str());
  return {};
}

Result<Replacement> begin(const std::string& path, Takes when) {
  // Opened also if it will be replaced: a file that may not be written is not replaced either.
  // (Opening a pipe that nobody reads waits for a reader, and perhaps with all signals blocked.)
  constexpr int kFlags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK;
  UniqueFd fd(::open(path.c_str(), kFlags, 0600));
  if (!fd.is_open() && errno == ENXIO)
    return Error{ErrorKind::kSystem, "cannot write " + path + ": nobody reads this pipe; start its reader first"};
  if (!fd.is_open() && errno == ELOOP)
    return Error{ErrorKind::kPermission, "cannot write " + path + ": it is a symbolic link, which is not followed"};
  if (!fd.is_open()) return system_error("cannot write " + path, errno);
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0) return system_error("cannot examine " + path, errno);
  if (!S_ISREG(facts.st_mode)) {
    ::fcntl(fd.get(), F_SETFL, O_WRONLY);  // writes wait again
    return Replacement{std::move(fd), path};
  }
  const bool is_own = facts.st_uid == ::geteuid();
  if (is_own && facts.st_size == 0) return Replacement{std::move(fd), path};
  // (Whether somebody else's can be replaced is known when it was.)
  if (Replacement anew = put_in_place_of(path, is_own ? when : Takes::kNow); anew.fd.is_open()) return anew;
  if (!is_own) return Error{ErrorKind::kPermission, "cannot write " + path + ": it is another user's file"};
  if (::ftruncate(fd.get(), 0) != 0) return system_error("cannot empty " + path, errno);
  (void)::fchmod(fd.get(), S_IRUSR | S_IWUSR);  // where there are no modes, there are none to set
  return Replacement{std::move(fd), path};
}

}  // namespace

Result<UniqueFd> begin_new_file(const std::string& path) {
  Result<Replacement> begun = begin(path, Takes::kNow);
  if (!begun.ok()) return begun.error();
  return begun.take().fd;
}

Result<Replacement> begin_replacement(const std::string& path) { return begin(path, Takes::kLater); }

}  // namespace plimsoll
