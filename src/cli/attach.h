// cli/attach.h: `plimsoll attach`.
#pragma once

#include <memory>

#include "cli/command.h"

namespace plimsoll::cli {

std::unique_ptr<Command> make_attach();

}  // namespace plimsoll::cli
