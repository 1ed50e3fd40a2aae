// base/file_text.h: the text of a file that somebody else may have named.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/unique_fd.h"

namespace plimsoll {

// What is in a regular file, and when that was changed last.
struct FileText {
  std::string text;
  std::int64_t modified_ns = 0;  // CLOCK_REALTIME
};

// None if it cannot be read, is no regular file, or has more than `most` bytes. What it says its size is, is read:
// nothing of the files of /proc.
std::optional<FileText> read_text(const UniqueFd& file, std::size_t most);
// The same of a name in our own file system.
std::optional<FileText> read_text(const std::string& path, std::size_t most);

}  // namespace plimsoll
