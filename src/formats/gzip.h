// formats/gzip.h: bytes -> the bytes of a .gz file.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace plimsoll::formats {

// Compresses quickly rather than well. Without name and time in the header: equal input gives equal output.
// Fails (kSystem) only where zlib cannot get its 256 KiB of memory.
Result<std::string> gzip(std::string_view bytes);

}  // namespace plimsoll::formats
