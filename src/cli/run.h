// cli/run.h: `plimsoll run`: run a Python program and record it.
#pragma once

#include <memory>

#include "cli/command.h"

namespace plimsoll::cli {

std::unique_ptr<Command> make_run();

}  // namespace plimsoll::cli
