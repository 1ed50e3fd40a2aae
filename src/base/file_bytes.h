// base/file_bytes.h: what is in a file, as it was when it was read.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/regular_file.h"
#include "base/result.h"

namespace plimsoll {

// A copy of a regular file's bytes. Not a mapping: of that, whoever cuts the file short meanwhile or begins it anew
// takes the pages away, and the next look at them ends the process (SIGBUS). Movable, not copyable.
class FileBytes {
 public:
  // Errors name the path: kPermission, or kBadInput for what is not there, not a regular file, or has become shorter
  // while it was read. What is appended meanwhile is left out.
  static Result<FileBytes> read(const std::string& path);
  // The same of a file that is open; `path` is for errors.
  static Result<FileBytes> read(const RegularFile& file, const std::string& path);

  [[nodiscard]] std::string_view view() const { return {bytes_.get(), size_}; }

 private:
  FileBytes(std::unique_ptr<char[]> bytes, std::size_t size) : bytes_(std::move(bytes)), size_(size) {}
  std::unique_ptr<char[]> bytes_;
  std::size_t size_;
};

}  // namespace plimsoll
