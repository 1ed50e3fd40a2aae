// base/mapped_file.cc: open, mmap.
#include "base/mapped_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace plimsoll {

Result<MappedFile> MappedFile::open(const std::string& path) {
  const Result<RegularFile> file = RegularFile::open(path);
  if (!file.ok()) return file.error();
  return map(file.value(), path);
}

Result<MappedFile> MappedFile::map(const RegularFile& file, const std::string& path) {
  if (file.size == 0) return MappedFile(nullptr, 0);  // an empty mapping is an error to mmap
  void* memory = ::mmap(nullptr, file.size, PROT_READ, MAP_PRIVATE, file.fd.get(), 0);
  if (memory == MAP_FAILED) return system_error("cannot map " + path, errno);
  return MappedFile(memory, file.size);
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
