// formats/mojo/reader.h: Austin's binary files (MOJO, versions 1 to 4) -> a Profile.
//
// Austin measures: a sample weighs the microseconds since the one before. In "full" mode a sample says whether the
// thread was idle; changes of memory are left out, and so are the stacks of suspended asyncio tasks, which no thread
// was on. Samples have no times: they are put one after the other, thread by thread.
#pragma once

#include <string_view>

#include "base/result.h"
#include "profile/profile.h"

namespace plimsoll::formats::mojo {

bool is_mojo(std::string_view bytes);

// A file that is cut or damaged gives what came before, with complete == false. kUnsupported for versions after 4 and
// for profiles of memory only.
Result<profile::Profile> read(std::string_view bytes);

}  // namespace plimsoll::formats::mojo
