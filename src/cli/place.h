// cli/place.h: how a function and its position in the source are called in a report.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "profile/profile.h"

namespace plimsoll::cli {

// A path as shown, and whether the code belongs to the program or came with Python or a package.
struct ShownPath {
  std::string text;
  bool is_library = false;
};

// "/home/me/app/db/pool.py" in /home/me/app -> "db/pool.py"; ".../site-packages/numpy/linalg.py" -> "numpy/linalg.py";
// "/usr/lib/python3.12/json/decoder.py" -> "json/decoder.py"; "<frozen posixpath>" stays.
ShownPath shown_path(std::string_view file, std::string_view directory);

// The name of a function; "[no stack]" for none.
std::string function_name(const profile::Profile& profile, FunctionId function);

// "db/pool.py:40": at `line`, or where the function is defined when the line is 0. A native function has its library's
// name alone. Empty if nothing is known.
ShownPath place_of(const profile::Profile& profile, FunctionId function, std::uint32_t line,
                   std::string_view directory);

// Which library a function belongs to, in the words of a report: "json", "numpy", "the import system". Empty for the
// program's own code.
std::string library_of(const profile::Profile& profile, FunctionId function);

// Whether a library's frames only lead from an import (or `python -m`) to the code that it runs: nobody's own business.
bool is_machinery(std::string_view library);

}  // namespace plimsoll::cli
