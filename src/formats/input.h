// formats/input.h: bytes of any format that can be read -> a Profile.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "formats/gzip.h"
#include "profile/profile.h"

namespace plimsoll::formats {

// A format that Plimsoll can read.
struct Reader {
  std::string_view name;     // as in writers(), where that format can be written, too
  std::string_view summary;  // one line for people
  // Whether bytes look like this format. Cheap, and no two readers say so of the same bytes.
  bool (*recognises)(std::string_view bytes);
  Result<profile::Profile> (*read)(std::string_view bytes);
  // The same of a file, whose bytes it puts aside as it goes: for formats of large files. May be null.
  Result<profile::Profile> (*read_file)(const MappedFile& file) = nullptr;
};

// All readers; .plim is the first.
const std::vector<Reader>& readers();

// Reads bytes of any of these formats, plain or gzipped, by what is in them. Bytes that are none are an error
// (kBadInput) that lists the formats.
Result<profile::Profile> read_profile(std::string_view bytes);

// The same bytes, or what they unpack to if they are gzipped, as far as they go.
Result<Gunzipped> unpacked(std::string bytes);

// A file's bytes, unpacked if they are gzipped, as far as they go. Errors name the path.
Result<Gunzipped> read_unpacked_file(const std::string& path);

// Opens and reads a file. Errors name the path.
Result<profile::Profile> read_profile_file(const std::string& path);

}  // namespace plimsoll::formats
