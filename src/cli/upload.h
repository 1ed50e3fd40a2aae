// cli/upload.h: `plimsoll upload`.
#pragma once

#include <memory>

#include "cli/command.h"

namespace plimsoll::cli {

std::unique_ptr<Command> make_upload();

}  // namespace plimsoll::cli
