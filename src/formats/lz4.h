// formats/lz4.h: the bytes of .lz4 files.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace plimsoll::formats {

// Whether bytes begin like an .lz4 file.
bool is_lz4(std::string_view bytes);

// What an .lz4 file held, as far as it goes: one that is cut or damaged gives what came before. Fails (kBadInput) if it
// unpacks to more than `limit` bytes, (kSystem) if there is no memory.
Result<std::string> unpack_lz4(std::string_view bytes, std::size_t limit);

}  // namespace plimsoll::formats
