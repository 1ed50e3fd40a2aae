// base/unkept_file.h: a file that goes unless somebody says that it is to stay.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace plimsoll {

// Removes the regular file at `path` at its end, if there is one; a pipe or a device, and what a link leads to, stay.
class UnkeptFile {
 public:
  explicit UnkeptFile(std::string path) : path_(std::move(path)) {}
  UnkeptFile(const UnkeptFile&) = delete;
  UnkeptFile& operator=(const UnkeptFile&) = delete;
  ~UnkeptFile() {
    struct stat facts {};
    if (!path_.empty() && ::lstat(path_.c_str(), &facts) == 0 && S_ISREG(facts.st_mode)) ::unlink(path_.c_str());
  }
  void keep() { path_.clear(); }

 private:
  std::string path_;
};

}  // namespace plimsoll
