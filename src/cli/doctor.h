// cli/doctor.h: `plimsoll doctor`.
#pragma once

#include <memory>

#include "cli/command.h"

namespace plimsoll::cli {

std::unique_ptr<Command> make_doctor();

}  // namespace plimsoll::cli
