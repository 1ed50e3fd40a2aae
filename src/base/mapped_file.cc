// base/mapped_file.cc: open, fstat, mmap.
#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/unique_fd.h"

namespace plimsoll {

Result<MappedFile> MappedFile::open(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat facts {};
  if (!fd.is_open() || ::fstat(fd.get(), &facts) != 0) {
    Error error = system_error("cannot read " + path, errno);
    if (error.kind != ErrorKind::kPermission) error.kind = ErrorKind::kBadInput;
    return error;
  }
  if (!S_ISREG(facts.st_mode)) return Error{ErrorKind::kBadInput, "cannot read " + path + ": not a regular file"};
  const auto size = static_cast<std::size_t>(facts.st_size);
  if (size == 0) return MappedFile(nullptr, 0);  // an empty mapping is an error to mmap
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (memory == MAP_FAILED) return system_error("cannot map " + path, errno);
  return MappedFile(memory, size);
}

void MappedFile::put_aside(std::size_t begin, std::size_t end) const {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  begin = (begin + page - 1) / page * page;
  end = std::min(end, size_) / page * page;
  if (begin < end) ::madvise(static_cast<char*>(memory_) + begin, end - begin, MADV_DONTNEED);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (memory_ != nullptr) ::munmap(memory_, size_);
}

}  // namespace plimsoll
