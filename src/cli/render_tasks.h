// cli/render_tasks.h: asyncio's tasks in a process, as text and as JSON.
#pragma once

#include <string>

#include "cli/render_dump.h"
#include "cli/terminal.h"
#include "remote/task_dump.h"

namespace plimsoll::cli {

std::string render_tasks(const remote::TaskDump& dump, const SourceLookup& source, const Page& page);
// docs/json.md describes it.
std::string tasks_json(const remote::TaskDump& dump, const SourceLookup& source);

}  // namespace plimsoll::cli
