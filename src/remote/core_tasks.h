// remote/core_tasks.h: asyncio's tasks in a process when its core file was written.
#pragma once

#include "remote/core_file.h"
#include "remote/task_dump.h"

namespace plimsoll::remote {

// As take_task_dump: nothing moves, so all is of one moment. Threads have the names that Python's module threading has
// for them.
Result<TaskDump> take_core_task_dump(const CoreFile& core);

}  // namespace plimsoll::remote
