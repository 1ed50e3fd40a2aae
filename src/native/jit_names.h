// native/jit_names.h: the names that a running process has written down for the code that it makes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/unique_fd.h"
#include "native/code_names.h"
#include "native/module_map.h"
#include "os/process.h"

namespace plimsoll::native {

// Reads perf's map of the process and the jitdumps that it has mapped, as they grow. For one thread; reads files.
class JitNames {
 public:
  // What is known of an address. `modules` are the process's; `now_ns` is CLOCK_MONOTONIC. Files are looked at a
  // hundred times a second at most, so that a name that was written a moment ago may be found later only. Null if there
  // is none.
  const std::pair<const std::uint64_t, CodeNames::Function>* find(os::Pid process, const ModuleMap* modules,
                                                                  Address address, std::int64_t now_ns);

 private:
  // A file as far as it has been read.
  struct Source {
    UniqueFd fd;
    bool is_dump = false, is_begun = false;
    std::uint64_t inode = 0;
    std::uint64_t read = 0;
  };

  void open_new(os::Pid process, const ModuleMap* modules);
  void read_on(Source& source);

  os::Pid process_{};
  CodeNames names_;
  std::vector<Source> sources_;
  std::string bytes_;
  std::int64_t next_look_ns_ = 0, next_open_ns_ = 0;
  const ModuleMap* opened_of_ = nullptr;  // when files were looked for last
  bool has_map_ = false;
};

}  // namespace plimsoll::native
