// base/write_file.h: bytes go to disk, whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace plimsoll {

// Writes all of them. Returns the errno of what failed, or 0.
int write_all(int descriptor, std::string_view bytes);

// Replaces the file at `path`, or makes it, readable for its owner only: a profile tells much about a program. The
// bytes go to a temporary file beside it, which is renamed when it is complete. A symbolic link keeps pointing where it
// does, also if nothing is there yet; a pipe or a device is written to.
Status write_file(const std::string& path, std::string_view bytes);

}  // namespace plimsoll
