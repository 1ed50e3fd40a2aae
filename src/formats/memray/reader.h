// formats/memray/reader.h: memray's files -> a Profile of allocations, without samples of time.
//
// Every block is in it, as in our own exact recordings, counted by stack, thread, domain and the times of its birth and
// its end, which are known to 10 ms: those of memray's records of the RSS. Of files made with --aggregate what was
// alive at the peak and at the end is known, and nothing else. Native frames are left out: what is in the file is
// addresses in libraries of the machine that it was recorded on.
#pragma once

#include <string_view>

#include "base/result.h"
#include "profile/profile.h"

namespace plimsoll::formats::memray {

// Whether bytes begin like a file of memray, plain or compressed (LZ4).
bool is_memray(std::string_view bytes);

// A file that is cut or damaged is read up to there, with complete == false. kUnsupported for versions other than 12
// and 13; kBadInput if the header is cut, the bytes are another LZ4 file, or unpack to more than 4 GiB.
Result<profile::Profile> read(std::string_view bytes);

}  // namespace plimsoll::formats::memray
