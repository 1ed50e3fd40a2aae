// remote/core_dump.h: what all threads of a process did when its core file was written.
#pragma once

#include "remote/core_file.h"
#include "remote/dump.h"

namespace plimsoll::remote {

// As take_dump, with native frames if these are asked for. Threads have the names that Python's module threading has
// for them.
Result<Dump> take_core_dump(const CoreFile& core, const DumpOptions& options = {});

}  // namespace plimsoll::remote
