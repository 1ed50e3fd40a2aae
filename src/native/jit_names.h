// native/jit_names.h: the names that a running process has written down for the code that it makes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/unique_fd.h"
#include "native/code_names.h"
#include "os/process.h"

namespace plimsoll::native {

// Reads perf's map of the process and the jitdumps that it has mapped, as they grow. For one thread; reads files.
class JitNames {
 public:
  // What is known of an address that ran at `time_ns`; null if there is nothing. `now_ns` is not before that; both are
  // CLOCK_MONOTONIC. A name that is missing is found if it was written down before that time. One that takes the place
  // of another, a new map, and one that is begun anew are noticed within 10 ms; another file in the map's place, and
  // new jitdumps while names are missing, within 100 ms.
  const std::pair<const std::uint64_t, CodeNames::Function>* find(os::Pid process, Address address,
                                                                  std::int64_t time_ns, std::int64_t now_ns);

 private:
  // A file as far as it has been read.
  struct Source {
    UniqueFd fd;
    bool is_dump = false, is_begun = false;
    std::uint64_t inode = 0;
    std::uint64_t read = 0;
    std::string head = {};  // what a map began with when it was read first
  };

  void open_map(std::int64_t now_ns);
  static bool is_begun_anew(const Source& map);
  void open_dumps();
  void read_on(std::int64_t now_ns);
  void read_on(Source& source);

  os::Pid process_{};
  CodeNames names_;
  std::vector<Source> sources_;
  std::string bytes_;
  std::int64_t read_ns_ = 0;  // files were read on
  std::int64_t next_look_ns_ = 0, next_search_ns_ = 0, next_comparison_ns_ = 0;
};

}  // namespace plimsoll::native
