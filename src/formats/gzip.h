// formats/gzip.h: bytes -> the bytes of a .gz file, and back.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace plimsoll::formats {

// Compresses quickly rather than well. Without name and time in the header: equal input gives equal output.
// Fails (kSystem) only where zlib cannot get its 256 KiB of memory.
Result<std::string> gzip(std::string_view bytes);

// Whether bytes begin like a .gz file.
bool is_gzip(std::string_view bytes);

// What a .gz file held, as far as it goes.
struct Gunzipped {
  std::string bytes;
  bool is_whole = false;  // false: the file is cut or damaged, and bytes are what came before
};
// Unpacks all members of a .gz file. Fails (kBadInput) if they unpack to more than `limit` bytes.
Result<Gunzipped> gunzip(std::string_view bytes, std::size_t limit);

}  // namespace plimsoll::formats
