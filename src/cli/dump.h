// cli/dump.h: `plimsoll dump`.
#pragma once

#include <memory>

#include "cli/command.h"

namespace plimsoll::cli {

std::unique_ptr<Command> make_dump();

}  // namespace plimsoll::cli
