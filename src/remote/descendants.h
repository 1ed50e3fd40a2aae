// remote/descendants.h: the processes that descend from one, as they come.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "os/process.h"

namespace plimsoll::remote {

// Finds each process once it is there, and again when it runs another program. Used by one thread.
class Descendants {
 public:
  explicit Descendants(os::Pid root) : root_(root) {}

  // Processes that may be a Python by now, and are not recorded: for some seconds those that are new, or that have
  // become another program, ever more seldom. Not many at once, as to look into one takes half a millisecond, and a
  // build or a shell script starts hundreds: the others come with the next calls.
  static constexpr std::size_t kMostAtOnce = 16;
  std::vector<os::Pid> candidates(std::int64_t now_ns);
  // It is one, and is recorded.
  void is_recorded(os::Pid pid) { known_[pid].is_recorded = true; }
  // It has ended, or runs another program now.
  void has_changed(os::Pid pid, std::int64_t now_ns) {
    Known& known = known_[pid];
    known.is_recorded = false;
    known.since_ns = known.next_ns = now_ns;
  }

 private:
  // What is known of a process that has been seen.
  struct Known {
    std::int64_t since_ns = 0;      // that it is, or became another program
    std::int64_t next_ns = 0;       // when it is to be looked into
    std::uint64_t start_ticks = 0;  // which no other process of its number has
    std::string program;            // the file that it runs
    bool is_recorded = false;
    bool is_there = true;
  };
  void visit(os::Pid parent, std::int64_t now_ns, int depth);

  os::Pid root_;
  std::unordered_map<os::Pid, Known> known_;
};

}  // namespace plimsoll::remote
