// cli/run_report.h: the few lines that `plimsoll run` ends with.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"

namespace plimsoll::cli {

// Reads the profile at `plim` and says on standard error what was recorded, what was not, and, unless `shown_as` is
// empty, in which file and what to type next.
void report_recording(const std::string& plim, const std::string& shown_as, Console& console);

// The profiles of child processes, which lie beside `plim`: those of which there is a file with that ending behind the
// name.
std::vector<std::string> profiles_of_children(const std::string& plim, std::string_view ending = {});

// Names the profiles of child processes.
void report_children(const std::string& plim, Console& console);

}  // namespace plimsoll::cli
