// base/new_file.h: a file begins anew.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace plimsoll {

// Opens an empty file at `path` for writing, of mode 0600; one's own that is empty keeps its mode, for which somebody
// may have made it. One that has something in it, or is somebody else's, is not emptied but gives its place to a new
// one, so that who reads it keeps what it had; where that cannot be (a directory that takes no new files), one's own is
// emptied, and somebody else's is an error: he could read what is written. A pipe or a device is opened; a symbolic
// link is an error.
Result<UniqueFd> begin_new_file(const std::string& path);

// A file that is written, and where it is meanwhile.
struct Replacement {
  UniqueFd fd;
  std::string path;
};
// The same, for what is worth nothing before it is whole: a file that has something in it keeps its place until the
// caller gives it to the new one, by renaming that.
Result<Replacement> begin_replacement(const std::string& path);

}  // namespace plimsoll
