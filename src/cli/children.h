// cli/children.h: the profiles of child processes, which `plimsoll run --children` puts beside the program's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"

namespace CLI {
class App;
}

namespace plimsoll::cli {

// Of app.plim: app.123.plim and the like, of which there is a file with that ending behind the name.
std::vector<std::string> profiles_of_children(const std::string& plim, std::string_view ending = {});

// Names them, and how to see them with `plim` as one.
void report_children(const std::string& plim, Console& console);

// Adds the flag --children.
void add_children_flag(CLI::App& app, bool& with_children);

// The profile in a file, with those of its children if they are wanted. One that cannot be read or joined is left out,
// and said to be. `-`, standard input, has none.
Result<Input> read_profile(const std::string& path, bool with_children, Console& console);

}  // namespace plimsoll::cli
