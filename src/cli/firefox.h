// cli/firefox.h: `plimsoll firefox`: a profile in the Firefox Profiler's user interface.
#pragma once

#include <memory>

#include "cli/command.h"

namespace plimsoll::cli {

std::unique_ptr<Command> make_firefox();

}  // namespace plimsoll::cli
