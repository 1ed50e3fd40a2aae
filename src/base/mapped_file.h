// base/mapped_file.h: a file's bytes as memory, without a copy.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/regular_file.h"
#include "base/result.h"

namespace plimsoll {

// The bytes of a regular file, mapped read-only for as long as the object lives. Movable, not copyable. A file that is
// cut short while it is mapped ends the process (SIGBUS), as everywhere; one that grows shows its first bytes. So this
// is for files that are too large to be read into memory, and that nobody writes any more; for others there is
// FileBytes.
class MappedFile {
 public:
  // Errors name the path: kPermission, or kBadInput for what is not there or not a regular file.
  static Result<MappedFile> open(const std::string& path);
  // The same of a file that is open; `path` is for errors.
  static Result<MappedFile> map(const RegularFile& file, const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] std::string_view view() const { return {static_cast<const char*>(memory_), size_}; }
  // Gives the memory of whole pages between two offsets back to the kernel. They can be read again, from its cache.
  void put_aside(std::size_t begin, std::size_t end) const;

 private:
  MappedFile(void* memory, std::size_t size) : memory_(memory), size_(size) {}
  void* memory_;
  std::size_t size_;
};

}  // namespace plimsoll
