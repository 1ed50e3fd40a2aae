// cli/run_report.h: the few lines that `plimsoll run` ends with.
#pragma once

#include <cstdint>
#include <string>

#include "cli/console.h"

namespace plimsoll::cli {

// What becomes of child processes.
enum class Children : std::uint8_t { kLeftAlone, kRecorded };

// Whether CPU time that is in no sample is too little to be told of, beside what the program has used. In nanoseconds.
bool is_little(std::int64_t cpu_ns, std::int64_t all_cpu_ns);

// Reads the profile at `plim` and says on standard error what was recorded, what was not, and, unless `shown_as` is
// empty, in which file and what to type next.
void report_recording(const std::string& plim, const std::string& shown_as, Children children, Console& console);

// Names the profiles of child processes that lie beside `plim`, and how to see them with it as one. Those that were not
// written since then, nanoseconds since 1970, are of an earlier recording.
void report_children(const std::string& plim, std::int64_t start_realtime_ns, Console& console);

}  // namespace plimsoll::cli
