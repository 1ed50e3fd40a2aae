// cli/program_words.h: where the options of `plimsoll run` end and the profiled program's command line begins.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace plimsoll::cli {

// Removes the program's words from the end of `words` (which start with the verb) and returns them. As for python
// itself, the program begins at the first word that is no option of the verb's: a file, -m, -c, or - for standard
// input. A -- before it is dropped. If `is_own` says that the first word is an argument of the verb's, no program
// follows.
std::vector<std::string> take_program(
    const CLI::App& verb, std::vector<std::string>& words,
    const std::function<bool(std::string_view)>& is_own = [](std::string_view) { return false; });

}  // namespace plimsoll::cli
