// cli/convert.h: `plimsoll convert FILE -o OUT`: a profile for other people's viewers.
#pragma once

#include <memory>

#include "cli/command.h"

namespace plimsoll::cli {

std::unique_ptr<Command> make_convert();

}  // namespace plimsoll::cli
