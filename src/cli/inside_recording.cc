#include "cli/inside_recording.h"

#include <fmt/format.h>

#include "cli/exit_code.h"
#include "cli/output_path.h"
#include "cli/python_program.h"
#include "cli/run_report.h"

namespace plimsoll::cli {

Result<int> record_inside(const InsideRecording& recording, const cpython::Version& version, Console& console) {
  if (version.major == 3 && version.minor < 14)
    return Error{
        ErrorKind::kUnsupported,
        fmt::format("process {} runs Python {}, which runs no code for others (3.14 and later do): its allocations "
                    "can be recorded from its start only, by plimsoll run --alloc",
                    recording.pid, version.text())};
  // The process has a current directory of its own.
  const Result<std::string> absolute = absolute_path(recording.output);
  if (!absolute.ok()) return absolute.error();
  const std::string& output = absolute.value();
  std::vector<std::string> words{std::to_string(recording.pid), fmt::format("{}.{}", version.major, version.minor),
                                 "path=" + output};
  for (const auto& [name, value] : recording.settings) words.push_back(fmt::format("{}={}", name, value));
  if (recording.duration_s > 0) {
    words.emplace_back("--duration");
    words.push_back(fmt::format("{}", recording.duration_s));
  }
  Result<int> code = run_module("", "plimsoll._inside", words);
  if (code.ok() && code.value() == kFine) report_recording(output, recording.output, Children::kLeftAlone, console);
  return code;
}

}  // namespace plimsoll::cli
