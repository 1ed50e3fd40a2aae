// profile/plim_file.h: a .plim file on disk while it grows.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"

namespace plimsoll::profile {

// A .plim file being written. The file has mode 0600 and grows by whole chunks only: if a chunk cannot be written in
// full (a full disk), the file is cut back to the chunk before it.
class PlimFile {
 public:
  // Begins the file at `path` anew, as begin_new_file does; symbolic links are not followed.
  static Result<PlimFile> create(const std::string& path);

  // Appends bytes. If the program has closed or reused our descriptor behind our back, the file is opened again; what
  // the program has made of the descriptor is never written to.
  Status append(const std::string& bytes);
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  PlimFile(std::string path, UniqueFd fd, std::uint64_t device, std::uint64_t inode)
      : path_(std::move(path)), fd_(std::move(fd)), device_(device), inode_(inode) {}
  [[nodiscard]] bool is_ours(int fd) const;
  Status reopen_if_lost();

  std::string path_;
  UniqueFd fd_;
  std::uint64_t device_;
  std::uint64_t inode_;
  std::int64_t size_ = 0;
};

}  // namespace plimsoll::profile
