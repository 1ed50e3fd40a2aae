// cli/heap.h: `plimsoll heap show|diff|export`: what is alive, how big it is, and what keeps it alive.
#pragma once

#include <memory>

#include "cli/command.h"

namespace plimsoll::cli {

std::unique_ptr<Command> make_heap();

}  // namespace plimsoll::cli
