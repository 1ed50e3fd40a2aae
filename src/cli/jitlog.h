// cli/jitlog.h: `plimsoll jitlog FILE`: the loops and bridges that PyPy's JIT made.
#pragma once

#include <memory>

#include "cli/command.h"

namespace plimsoll::cli {

std::unique_ptr<Command> make_jitlog();

}  // namespace plimsoll::cli
