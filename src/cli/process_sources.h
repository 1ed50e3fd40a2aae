// cli/process_sources.h: the sources of another process: as it sees its files, in a container, too, and only those that
// it may read itself; or, of one that has ended, as somebody opens them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/unique_fd.h"
#include "cli/source_text.h"
#include "os/process_files.h"

namespace plimsoll::cli {

// Reads a file when it is first asked for.
class ProcessSources {
 public:
  using Open = std::function<UniqueFd(const std::string& path)>;

  explicit ProcessSources(Open open) : open_(std::move(open)) {}  // of one that has ended
  explicit ProcessSources(os::Pid pid) : files_(pid) {}

  const SourceText& of(std::string_view file);

 private:
  Open open_;
  std::optional<os::ProcessFiles> files_;
  std::map<std::string, SourceText, std::less<>> known_;
};

}  // namespace plimsoll::cli
