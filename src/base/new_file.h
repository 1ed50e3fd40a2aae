// base/new_file.h: a file begins anew.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace plimsoll {

// Opens an empty file at `path` for writing, of mode 0600 if there was none. One that has something in it is not
// emptied but gives its place to a new one, so that who reads it keeps what it had; where that cannot be (somebody
// else's file, a directory that takes no new files) it is emptied. A pipe or a device is opened; a symbolic link is an
// error.
Result<UniqueFd> begin_new_file(const std::string& path);

}  // namespace plimsoll
