// profile/plim_reader.h: .plim bytes -> Profile. The format is specified in docs/format.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "profile/profile.h"

namespace plimsoll::profile {

// Reads the bytes of a .plim file. A file that is cut anywhere after its header gives the profile up to the last
// whole chunk, with complete == false; a damaged chunk ends the reading likewise. Bytes that are not a .plim file,
// or one of a newer major version, are an error (kBadInput). The bytes may be hostile: sizes are checked before
// anything is allocated.
// Nor may they come to more than 8 GiB here: that, too, is an error.
Result<Profile> read_plim(std::string_view bytes);
Result<Profile> read_plim_within(std::uint64_t most_bytes, std::string_view bytes);

// Opens and reads a file. Errors name the path.
Result<Profile> read_plim_file(const std::string& path);

}  // namespace plimsoll::profile
