// cli/heap_export.h: `plimsoll heap export`: a snapshot for other tools.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "cli/console.h"

namespace plimsoll::cli {

// Where to, and as what.
struct HeapExport {
  std::string output;  // - is standard output
  std::string format;  // empty: by the name of the output
};

// Writes the snapshot in the file `input`, seen through `views`. The exit code, or what was wrong.
Result<int> export_heap(Console& console, const std::string& input, std::span<const std::string> views,
                        const HeapExport& to);

}  // namespace plimsoll::cli
