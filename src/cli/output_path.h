// cli/output_path.h: where results go.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace plimsoll::cli {

// Where a profile goes if nobody has said: NAME-DATE-TIME.plim in the current directory, or with another ending, and
// with a number if that is taken.
std::string new_profile_path(const std::string& name, std::string_view ending = ".plim");

// The same, and makes the file, empty: a program that starts at the same moment finds another name. (Where it cannot be
// made, whoever writes it will say so.)
std::string take_profile_path(const std::string& name, std::string_view ending = ".plim");

// A path to write to, for somebody who is in another directory. An error if it is relative and ours has been removed.
Result<std::string> absolute_path(const std::string& path);

// Where a recording or a snapshot goes by -o. "-" is an error, and no file that would be called so: elsewhere it is
// standard output, which is the program's, or takes notices' place.
Status check_recording_path(const std::string& path);

// A path as a word of a command that is to be typed: quoted for the shell where it must be, and never an option.
std::string shell_word(const std::string& path);

// An error if both are the same file, by whatever names.
Status check_not_input(const std::string& output, const std::string& input);

}  // namespace plimsoll::cli
