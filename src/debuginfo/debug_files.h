// debuginfo/debug_files.h: where libdw looks for the debug information of a file.
#pragma once

#include <elfutils/libdwfl.h>

#include <string>

namespace plimsoll::debuginfo {

// What dwfl_begin wants. Looked for are: the file itself; /usr/lib/debug, by build-id and by .gnu_debuglink; servers,
// if DEBUGINFOD_URLS names any; and what debuginfod's client has in its cache, whether or not it does. Only regular
// files are opened.
const Dwfl_Callbacks* callbacks();

// Whether a file that debug information names can be left to libdw: it is not there, or a regular file that is not too
// large when it is unpacked.
bool may_be_opened(const std::string& path);

}  // namespace plimsoll::debuginfo
