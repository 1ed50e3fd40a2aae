// formats/tachyon/reader.h: binary profiles of CPython 3.15's profiling.sampling ("Tachyon") -> a Profile.
//
// A sample weighs a period: the one that was measured over the session where the file tells it, else the one that was
// asked for; meta "weights" says which. A thread that has the GIL or is known to be on a CPU runs, one that asks for
// the GIL waits for it, and any other waits for something, or runs native code: the file cannot tell. Opcodes are left
// out.
#pragma once

#include <string_view>

#include "base/result.h"
#include "profile/profile.h"

namespace plimsoll::formats::tachyon {

bool is_tachyon(std::string_view bytes);

// Reads files of either byte order. Names stand at the end of a file: one that is cut before them is an error
// (kBadInput), one that is cut within them has "[unknown frame]" for the rest; damaged samples end the profile, with
// complete == false. kUnsupported for versions after 1 and for unknown compressions.
Result<profile::Profile> read(std::string_view bytes);

}  // namespace plimsoll::formats::tachyon
