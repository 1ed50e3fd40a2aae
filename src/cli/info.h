// cli/info.h: `plimsoll info FILE`: what a profile holds and how good it is.
#pragma once

#include <memory>

#include "cli/command.h"

namespace plimsoll::cli {

std::unique_ptr<Command> make_info();

}  // namespace plimsoll::cli
