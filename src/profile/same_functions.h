// profile/same_functions.h: which functions of two profiles are the same.
//
// They are if their names and files are: files relative to where the programs started (in the same place, if only one
// profile tells it). Of several functions of one name in one file, where a sampler has met some and not others, those
// are the same that stand on the same line; or as far from it as most around them do, if the file has changed. What is
// left then is taken in the order of lines. Where one profile does not tell first lines, all of a name are one
// function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profile/profile.h"

namespace plimsoll::profile {

// A function of either profile or of both.
struct NamedFunction {
  std::string name;
  std::string file;
  bool has_first_line = true;  // in all profiles that have it: its lines can be told from there
};

// The functions of both profiles; of each profile's the index here.
struct SameFunctions {
  std::vector<NamedFunction> all;
  std::vector<std::uint32_t> before;
  std::vector<std::uint32_t> after;
};

SameFunctions same_functions(const Profile& before, const Profile& after);

}  // namespace plimsoll::profile
