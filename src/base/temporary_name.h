// base/temporary_name.h: what a file is called until it has its own name.
#pragma once

#include <climits>
#include <cstddef>
#include <string>
#include <string_view>

namespace plimsoll {

// A name beside `path`, for mkostemp or, with an ending, mkostemps: like that of the file, but no longer than a name
// may be, as it is for a file whose own is.
inline std::string temporary_name(const std::string& path, std::string_view ending = {}) {
  constexpr std::string_view kRandom = ".XXXXXX";
  const std::size_t name = path.rfind('/') + 1;
  const std::size_t most = name + NAME_MAX - kRandom.size() - ending.size();
  return path.substr(0, most).append(kRandom).append(ending);
}

}  // namespace plimsoll
