// base/regular_file.h: a file opened to be read whole.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace plimsoll {

// A file that somebody else may have named, open for reading. Not open, with errno, if it cannot be had or is no
// regular file: such a one is not even opened, as that may have effects (a device), or wait for somebody (a FIFO).
UniqueFd open_regular_file(const std::string& path);
// The same, and a link is no regular file.
UniqueFd open_regular_file_nofollow(const std::string& path);

// A regular file, open for reading, and its size when it was opened.
struct RegularFile {
  UniqueFd fd;
  std::size_t size = 0;

  // Errors name the path: kPermission, or kBadInput for what is not there or not a regular file.
  static Result<RegularFile> open(const std::string& path);
};

}  // namespace plimsoll
