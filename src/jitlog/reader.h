// jitlog/reader.h: the bytes of a jitlog -> a Forest.
#pragma once

#include <string_view>

#include "base/result.h"
#include "jitlog/forest.h"

namespace plimsoll::jitlog {

// Whether unpacked bytes begin like a jitlog.
bool is_jitlog(std::string_view bytes);

// Reads versions 1 to 4, of 32 and 64 bits, and newer ones as far as they are like those. A log that is cut or damaged
// gives what came before, and `problem` says why. kBadInput if the bytes do not begin like a jitlog. The bytes may be
// hostile.
Result<Forest> read(std::string_view bytes);

}  // namespace plimsoll::jitlog
