// cli/app.h: from the words of a command line to the exit code.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"

namespace plimsoll::cli {

using Commands = std::vector<std::unique_ptr<Command>>;

// Parses `words` (without the program's name), runs the command they name, and says on the console what went wrong.
int run_app(const Commands& commands, std::vector<std::string> words, Console& console);

}  // namespace plimsoll::cli
