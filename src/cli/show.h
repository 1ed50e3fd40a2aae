// cli/show.h: `plimsoll show FILE [VIEW]`: where the time went.
#pragma once

#include <memory>

#include "cli/command.h"

namespace plimsoll::cli {

std::unique_ptr<Command> make_show();

}  // namespace plimsoll::cli
