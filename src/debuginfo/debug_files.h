// debuginfo/debug_files.h: where libdw looks for the debug information of a file.
#pragma once

#include <elfutils/libdwfl.h>

namespace plimsoll::debuginfo {

// What dwfl_begin wants. Looked for are: the file itself; /usr/lib/debug, by build-id and by .gnu_debuglink; servers,
// if DEBUGINFOD_URLS names any; and what debuginfod's client has in its cache, whether or not it does.
const Dwfl_Callbacks* callbacks();

}  // namespace plimsoll::debuginfo
