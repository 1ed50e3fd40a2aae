// A core file in which anything may stand. The files that it names are opened, so none but an empty one is let in.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "remote/core_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int fd = ::memfd_create("core", MFD_CLOEXEC);
  if (fd < 0) return 0;
  if (::write(fd, data, size) == static_cast<ssize_t>(size))
    (void)plimsoll::remote::open_core_file("/proc/self/fd/" + std::to_string(fd), "/dev/null");
  ::close(fd);
  return 0;
}
