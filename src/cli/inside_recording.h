// cli/inside_recording.h: a recording of a process that runs already, by code of ours that it is made to run: what
// cannot be seen from outside, such as its allocations.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/console.h"
#include "cpython/layout.h"

namespace plimsoll::cli {

// What to record, and where to.
struct InsideRecording {
  std::int32_t pid = 0;
  std::string output;
  double duration_s = 0;                                      // 0: until the process ends
  std::vector<std::pair<std::string, std::string>> settings;  // names and values as PLIMSOLL_RUN has them (run.cc)
};

// Records until Ctrl-C, the end of the duration or the end of the process, and reports; the exit code. kUnsupported if
// CPython of this version cannot be made to run code from outside: before 3.14.
Result<int> record_inside(const InsideRecording& recording, const cpython::Version& version, Console& console);

}  // namespace plimsoll::cli
