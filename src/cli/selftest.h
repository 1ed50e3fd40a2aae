// cli/selftest.h: `plimsoll selftest`.
#pragma once

#include <memory>

#include "cli/command.h"

namespace plimsoll::cli {

std::unique_ptr<Command> make_selftest();

}  // namespace plimsoll::cli
