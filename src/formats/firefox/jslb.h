// formats/firefox/jslb.h: the binary container that the Firefox Profiler reads and writes beside JSON (".jslb").
//
// JSON texts and columns of numbers, "slabs", in one file; {"$s": N} in a JSON text stands for slab N.
#pragma once

#include <boost/json.hpp>
#include <string_view>

#include "base/result.h"

namespace plimsoll::formats::firefox {

bool is_jslb(std::string_view bytes);

// The value of the root slab, with every slab in its place, in memory of `storage`'s. kBadInput says at which byte the
// container is cut or makes no sense; a slab that would stand in several places, or in itself, does not.
Result<boost::json::value> parse_jslb(std::string_view bytes, boost::json::storage_ptr storage);

}  // namespace plimsoll::formats::firefox
