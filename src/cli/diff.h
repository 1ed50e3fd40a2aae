// cli/diff.h: `plimsoll diff BEFORE AFTER [VIEW]`.
#pragma once

#include <memory>

#include "cli/command.h"

namespace plimsoll::cli {

std::unique_ptr<Command> make_diff();

}  // namespace plimsoll::cli
