// base/file_bytes.cc: pread.
#include "base/file_bytes.h"

#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <new>

namespace plimsoll {

Result<FileBytes> FileBytes::read(const std::string& path) {
  const Result<RegularFile> file = RegularFile::open(path);
  if (!file.ok()) return file.error();
  return read(file.value(), path);
}

Result<FileBytes> FileBytes::read(const RegularFile& file, const std::string& path) {
  const std::size_t size = file.size;
  // Not filled with zeros first: that takes as long as reading does.
  std::unique_ptr<char[]> bytes(new (std::nothrow) char[size]);
  if (!bytes) return Error{ErrorKind::kSystem, "no memory for the " + std::to_string(size) + " bytes of " + path};
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::pread(file.fd.get(), bytes.get() + done, size - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("cannot read " + path, errno);
    if (got == 0)
      return Error{ErrorKind::kBadInput,
                   "cannot read " + path + ": it was cut short meanwhile; is something writing it?"};
    done += static_cast<std::size_t>(got);
  }
  return FileBytes(std::move(bytes), size);
}

}  // namespace plimsoll
