// os/process.h: another process, as the kernel shows it to those who may look.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace plimsoll::os {

// The kernel's id of a process, as this process sees it.
enum class Pid : std::int32_t {};

// A piece of a process's address space, as a line of /proc/PID/maps.
struct Mapping {
  std::uint64_t start = 0, end = 0;
  std::uint64_t file_offset = 0;
  std::uint64_t inode = 0;  // 0: not of a file
  bool is_readable = false;
  bool is_writable = false;
  bool is_executable = false;
  bool is_shared = false;    // what is written to it goes to the file, or to other processes
  std::string path;          // as the process saw it when it mapped it; "" for memory without a name
  std::uint64_t device = 0;  // of the file: a number that no other file system of this machine has at the time
};
// Whether both are of one file. Numbers of files are of a device's.
inline bool are_of_one_file(const Mapping& a, const Mapping& b) {
  return a.inode != 0 && a.inode == b.inode && a.device == b.device;
}

// One thread of a process.
struct Task {
  Tid tid{};
  Tid inner_tid{};  // in the process's own PID namespace: what it calls itself
  std::string name;
  char state = '?';  // R running or ready, S and D waiting, T and t stopped, Z and X ended
};

// Lines of /proc/PID/maps; what is damaged is left out. Pure.
std::vector<Mapping> parse_mappings(std::string_view text);

// The address space of a process. kBadInput if there is no such process, kPermission if it may not be looked at.
Result<std::vector<Mapping>> mappings_of(Pid pid);

// A mapping, and how much of it is in memory.
struct ResidentMapping {
  Mapping mapping;
  std::uint64_t resident_bytes = 0;  // its part of RSS
};
// Of /proc/PID/smaps; what is damaged is left out. Pure.
std::vector<ResidentMapping> parse_resident_mappings(std::string_view text);
// The address space of a process with what is in memory of it: the kernel looks at every page for that, some
// milliseconds a GB. Errors as of mappings_of.
Result<std::vector<ResidentMapping>> resident_mappings_of(Pid pid);

// The file behind a mapping, also if it is in a container's file system or has been deleted. Not open if it cannot be
// had. Only a file with the same inode passes for it.
UniqueFd open_mapped_file(Pid pid, const Mapping& mapping);

// The file in which the process tells perf the names of code that it makes: perf-PID.map in its own /tmp, with its own
// number. Not open if there is none, if it is no regular file, or if it is neither the process's own nor root's, as
// anybody may put a file there.
UniqueFd open_perf_map(Pid pid);

// Calls visit(number, word) for the fields of a line of /proc/PID/stat or /proc/PID/task/TID/stat, from the state,
// which is number 3 in proc(5), to `last`. The name before them may have anything in it. False if the line is damaged,
// or cut before `last`. Pure.
template <typename Visit>
bool each_stat_field(std::string_view line, int last, Visit visit) {
  const std::size_t name_end = line.rfind(") ");
  if (name_end == std::string_view::npos) return false;
  line.remove_prefix(name_end + 2);
  constexpr int kState = 3;
  for (int field = kState; field <= last; ++field) {
    const std::string_view word = line.substr(0, line.find(' '));
    if (word.empty()) return false;
    visit(field, word);
    line.remove_prefix(word.size() < line.size() ? word.size() + 1 : line.size());
  }
  return true;
}

// The threads of a process, in the order of their ids; empty if it has ended.
std::vector<Task> tasks_of(Pid pid);

// The lines of /proc/PID/task/TID/status; empty if the thread has ended.
std::string task_status(Pid pid, Tid tid);

// The processes that it has started, or inherited; empty where the kernel does not tell.
std::vector<Pid> children_of(Pid pid);

// When it was started, in ticks since the machine was; 0 if it is gone. A process of the same number has another.
std::uint64_t start_ticks(Pid pid);

// For how long it has been there, in nanoseconds, to some hundredths of a second; that of all time if it is gone.
std::int64_t age_ns(Pid pid);

// Where the stack of its program began, which exec draws anew; 0 if that is not told.
std::uint64_t stack_start(Pid pid);

// CPU time of those that have ended, and that it has waited for; 0 if that is not told. Counts in hundredths of a
// second.
std::int64_t ended_children_cpu_ns(Pid pid);

// Whether it is there, and is not a zombie.
bool is_alive(Pid pid);
// Whether it has no memory of its own and never had: unlike a process that is ending, whose memory is gone already.
bool is_kernel_thread(Pid pid);

// What a process takes of its machine.
struct Usage {
  char state = '?';  // as Task::state, of its first thread
  int threads = 0;
  std::int64_t resident_bytes = 0;  // RSS
  std::int64_t cpu_ns = 0;          // all its threads, living and dead
};
// None if it has ended.
std::optional<Usage> usage_of(Pid pid);
// From /proc/PID/stat, whose CPU time is left out: it counts in hundredths of a second. None if it is damaged. Pure.
std::optional<Usage> parse_usage(std::string_view stat, std::int64_t page_bytes);

// The arguments of a process, separated by spaces; empty if they cannot be read.
std::string command_line(Pid pid);
// Its working directory, and its program's file, as far as they can be read.
std::string working_directory(Pid pid);
std::string program_file(Pid pid);

// What decides whether we may read a process's memory.
struct Access {
  bool is_same_user = false;
  bool has_capability = false;  // CAP_SYS_PTRACE
  bool is_root = false;         // we are, in our own user namespace
  int ptrace_scope = -1;        // of the security module Yama; -1: it is not there
  bool is_contained = false;    // we are in a container
};
Access access_to(Pid pid);

}  // namespace plimsoll::os
