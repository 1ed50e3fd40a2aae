// formats/refusals.h: files of other tools that are known, and cannot be read.
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"

namespace plimsoll::formats {

// Why bytes that no reader takes cannot be read, and what can be done (kUnsupported); none if they are unknown.
std::optional<Error> refusal(std::string_view bytes);

}  // namespace plimsoll::formats
