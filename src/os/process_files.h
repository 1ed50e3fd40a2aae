// os/process_files.h: files by the names that another process has for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_text.h"
#include "base/unique_fd.h"
#include "os/process.h"

namespace plimsoll::os {

// As whom files are opened.
struct FileUser {
  std::uint32_t user = 0, group = 0;
  std::vector<std::uint32_t> groups;  // that it is in besides, in their order
  std::uint64_t capabilities = 0;     // in our user namespace
  bool operator==(const FileUser&) const = default;
};
// From the lines of /proc/PID/status, with the capabilities that they tell of; none if they are damaged. Pure.
std::optional<FileUser> parse_file_user(std::string_view status);

// Reads files for a process that names them. The process may lie: what it says is the source of a function may be
// somebody's secret, which we may read, and it may not. So names mean what they mean in its file system, where no link
// leads out of, and only what it may read itself is read. For one thread.
class ProcessFiles {
 public:
  // Its file system is the one that it has now, and names without a directory are in the one where it is now; they
  // stay, whether the process ends or goes elsewhere.
  explicit ProcessFiles(Pid pid) : ProcessFiles() {
    open_root_of(pid);
    add(pid);
  }

  // For a process that has ended, whose file system is taken to be ours: all of `users` must be allowed to read a file.
  // Names without a directory are in ours.
  explicit ProcessFiles(std::vector<FileUser> users);

  // Another process that gives names: from now on, all of them must be allowed to read a file.
  void add(Pid pid);
  // Asks again who the processes are, as one may give up rights, and then names what it could read before.
  void look_again();
  // A regular file of at most `most` bytes. None if there is none, or if it is not the processes' to read; and where we
  // may not become who they are, unless that is who we are.
  [[nodiscard]] std::optional<FileText> read(std::string_view name, std::size_t most) const {
    return read_text(open(name), most);
  }
  // The same file, open. Not open if there is none, or none that may be read.
  [[nodiscard]] UniqueFd open(std::string_view name) const;

 private:
  ProcessFiles() = default;
  void open_root_of(Pid pid);

  UniqueFd root_;
  std::optional<std::string> directory_;  // from the root on; none if it is not below it
  std::vector<Pid> processes_;            // that have not ended
  std::vector<FileUser> users_;           // all that these have been when somebody looked, each once
};

}  // namespace plimsoll::os
