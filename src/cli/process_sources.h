// cli/process_sources.h: the sources of another process: as it sees its files, in a container, too; or, of one that has
// ended, as they are here.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "cli/source_text.h"
#include "os/process.h"

namespace plimsoll::cli {

// Reads a file when it is first asked for.
class ProcessSources {
 public:
  ProcessSources() = default;  // of one that has ended
  explicit ProcessSources(os::Pid pid) : process_("/proc/" + std::to_string(static_cast<int>(pid))) {}

  const SourceText& of(std::string_view file);

 private:
  const std::string process_;  // its directory in /proc, or ""
  std::map<std::string, SourceText, std::less<>> known_;
};

}  // namespace plimsoll::cli
