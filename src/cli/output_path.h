// cli/output_path.h: where results go.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace plimsoll::cli {

// Where a profile goes if nobody has said: NAME-DATE-TIME.plim in the current directory, or with another ending, and
// with a number if that is taken.
std::string new_profile_path(const std::string& name, std::string_view ending = ".plim");

// An error if both are the same file, by whatever names.
Status check_not_input(const std::string& output, const std::string& input);

}  // namespace plimsoll::cli
