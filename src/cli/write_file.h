// cli/write_file.h: a result goes to disk whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace plimsoll::cli {

// Replaces the file at `path`, or makes it, readable for its owner only: a profile tells much about a program. The
// bytes go to a temporary file beside it, which is renamed when it is complete. A symbolic link keeps pointing where it
// does; a pipe or a device is written to.
Status write_file(const std::string& path, std::string_view bytes);

// Where a profile goes if nobody has said: NAME-DATE-TIME.plim in the current directory, or with another ending, and
// with a number if that is taken.
std::string new_profile_path(const std::string& name, std::string_view ending = ".plim");

// An error if both are the same file, by whatever names.
Status check_not_input(const std::string& output, const std::string& input);

}  // namespace plimsoll::cli
