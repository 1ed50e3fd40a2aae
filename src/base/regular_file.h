// base/regular_file.h: a file opened to be read whole.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace plimsoll {

// A regular file, open for reading, and its size when it was opened.
struct RegularFile {
  UniqueFd fd;
  std::size_t size = 0;

  // Errors name the path: kPermission, or kBadInput for what is not there or not a regular file.
  static Result<RegularFile> open(const std::string& path);
};

}  // namespace plimsoll
