// cli/children.h: the profiles of child processes, which `plimsoll run --children` puts beside the program's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::cli {

// Of app.plim: app.123.plim, app.123-2.plim and the like, of which there is a file with that ending behind the name.
std::vector<std::string> profiles_of_children(const std::string& plim, std::string_view ending = {});
// The process that such a name tells: 123; 0 of another name.
std::int64_t pid_of_child(const std::string& child);
// Those that were written since then, nanoseconds since 1970: the others are of an earlier recording of that name.
std::vector<std::string> profiles_of_children_since(const std::string& plim, std::int64_t start_realtime_ns);

}  // namespace plimsoll::cli
