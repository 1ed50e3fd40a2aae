// cli/python_verbs.h: the verbs that a module of the package does: `plimsoll selftest`, `plimsoll upload`.
#pragma once

#include <memory>

#include "cli/command.h"

namespace plimsoll::cli {

std::unique_ptr<Command> make_selftest();
std::unique_ptr<Command> make_upload();

}  // namespace plimsoll::cli
