#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "base/clock.h"
#include "base/regular_file.h"
#include "os/proc_files_linux.h"
#include "os/process.h"

namespace plimsoll::os {
namespace {

std::string proc_path(Pid pid, std::string_view file) {
  return "/proc/" + std::to_string(static_cast<int>(pid)) + "/" + std::string(file);
}

// A file of /proc, whose size nobody knows before; false with errno if it cannot be read.
bool read_whole(const std::string& path, std::string& out) {
  constexpr std::size_t kMost = std::size_t{256} << 20U;
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.is_open()) return false;
  out.clear();
  std::array<char, 1U << 16U> buffer;
  while (out.size() < kMost) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) break;
    out.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return true;
}

std::string read_or_nothing(const std::string& path) {
  std::string text;
  return read_whole(path, text) ? text : std::string();
}

// Takes a number, and what must follow it, from the front of a text.
bool take_number(std::string_view& text, int base, char then, std::uint64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!text.starts_with(then)) return false;
  text.remove_prefix(1);
  return true;
}

// "55ffa000-55ffb000 r-xp 00001000 08:01 1234      /usr/bin/python3.12"
bool parse_mapping(std::string_view line, Mapping& out) {
  std::uint64_t major = 0;
  std::uint64_t minor = 0;
  if (!take_number(line, 16, '-', out.start) || !take_number(line, 16, ' ', out.end) || line.size() < 5) return false;
  out.is_readable = line[0] == 'r';
  out.is_writable = line[1] == 'w';
  out.is_executable = line[2] == 'x';
  out.is_shared = line[3] == 's';
  line.remove_prefix(5);
  if (!take_number(line, 16, ' ', out.file_offset) || !take_number(line, 16, ':', major) ||
      !take_number(line, 16, ' ', minor) || out.start > out.end)
    return false;
  out.device = major << 32U | minor;
  const std::size_t digits = std::min(line.find(' '), line.size());
  std::from_chars(line.data(), line.data() + digits, out.inode);
  line.remove_prefix(digits);
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  out.path = line;
  return true;
}

bool is_file(const UniqueFd& fd, std::uint64_t inode) {
  struct stat facts {};
  return fd.is_open() && ::fstat(fd.get(), &facts) == 0 && facts.st_ino == inode;
}

// A name as "status" has it: there, a line end is written as \n, and a backslash as two.
std::string unescaped(std::string_view text) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escaped = text[i] == '\\' && i + 1 < text.size();
    if (is_escaped) ++i;
    name += is_escaped && text[i] == 'n' ? '\n' : text[i];
  }
  return name;
}

Tid innermost_tid(std::string_view status, Tid tid) {
  // One id for each namespace that the thread is in, ours first.
  std::string_view ids = status_field(status, "NSpid");
  ids = ids.substr(ids.find_last_of(" \t") + 1);
  std::int32_t inner = static_cast<std::int32_t>(tid);
  std::from_chars(ids.data(), ids.data() + ids.size(), inner);
  return Tid{inner};
}

}  // namespace

std::vector<Mapping> parse_mappings(std::string_view text) {
  std::vector<Mapping> mappings;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    Mapping mapping;
    if (parse_mapping(text.substr(0, end), mapping)) mappings.push_back(std::move(mapping));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return mappings;
}

namespace {

Result<std::string> address_space(Pid pid, std::string_view file) {
  std::string text;
  const std::string path = proc_path(pid, file);
  if (read_whole(path, text)) return text;
  const int failed = errno;
  if (failed == ENOENT || failed == ESRCH)
    return Error{ErrorKind::kBadInput, "there is no process " + std::to_string(static_cast<int>(pid))};
  return system_error(path, failed);
}

}  // namespace

Result<std::vector<Mapping>> mappings_of(Pid pid) {
  const Result<std::string> text = address_space(pid, "maps");
  if (!text.ok()) return text.error();
  return parse_mappings(text.value());
}

std::vector<ResidentMapping> parse_resident_mappings(std::string_view text) {
  constexpr std::string_view kResident = "Rss:";
  std::vector<ResidentMapping> mappings;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    ResidentMapping next;
    if (line.starts_with(kResident) && !mappings.empty()) {
      line.remove_prefix(std::min(line.find_first_not_of(' ', kResident.size()), line.size()));
      std::uint64_t kilobytes = 0;
      const os::Mapping& last = mappings.back().mapping;
      if (take_number(line, 10, ' ', kilobytes))
        mappings.back().resident_bytes = std::min(kilobytes, (last.end - last.start) / 1024) * 1024;
    } else if (parse_mapping(line, next.mapping)) {
      mappings.push_back(std::move(next));
    }
  }
  return mappings;
}

Result<std::vector<ResidentMapping>> resident_mappings_of(Pid pid) {
  const Result<std::string> text = address_space(pid, "smaps");
  if (!text.ok()) return text.error();
  return parse_resident_mappings(text.value());
}

UniqueFd open_mapped_file(Pid pid, const Mapping& mapping) {
  std::array<char, 64> range;
  char* end = std::to_chars(range.data(), range.data() + 20, mapping.start, 16).ptr;
  *end++ = '-';
  end = std::to_chars(end, end + 20, mapping.end, 16).ptr;
  const std::string by_address(range.data(), end);
  // The process's own view of the file system; the kernel's link to the very file, which takes a privilege; and, of the
  // program alone, one that takes none.
  for (const std::string& path :
       {proc_path(pid, "root") + mapping.path, proc_path(pid, "map_files/" + by_address), proc_path(pid, "exe")}) {
    UniqueFd fd = open_regular_file(path);
    if (is_file(fd, mapping.inode)) return fd;
  }
  return {};
}

UniqueFd open_perf_map(Pid pid) {
  std::string status;
  struct stat process {};
  if (!read_whole(proc_path(pid, "status"), status) || ::stat(proc_path(pid, "").c_str(), &process) != 0) return {};
  const Tid inner = innermost_tid(status, Tid{static_cast<std::int32_t>(pid)});
  const std::string path =
      proc_path(pid, "root") + "/tmp/perf-" + std::to_string(static_cast<std::int32_t>(inner)) + ".map";
  UniqueFd fd = open_regular_file_nofollow(path);
  struct stat file {};
  const bool is_its_own =
      fd.is_open() && ::fstat(fd.get(), &file) == 0 && (file.st_uid == process.st_uid || file.st_uid == 0);
  return is_its_own ? std::move(fd) : UniqueFd{};
}

namespace {

// Calls visit(id, folder) for each thread of a process; `folder` is its own in /proc.
template <typename Visit>
void each_task(Pid pid, Visit visit) {
  const std::string path = proc_path(pid, "task");
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), &::closedir);
  if (!directory) return;
  while (const dirent* entry = ::readdir(directory.get())) {
    std::int32_t number = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, number).ptr == end) visit(Tid{number}, path + "/" + entry->d_name);
  }
}

}  // namespace

std::vector<Task> tasks_of(Pid pid) {
  std::vector<Task> tasks;
  each_task(pid, [&](Tid tid, const std::string& folder) {
    const std::string status = read_or_nothing(folder + "/status");
    if (status.empty()) return;
    Task task;
    task.tid = tid;
    task.inner_tid = innermost_tid(status, task.tid);
    constexpr std::string_view kName = "Name:\t";
    if (status.starts_with(kName))
      task.name = unescaped(std::string_view(status).substr(kName.size(), status.find('\n') - kName.size()));
    if (const std::string_view state = status_field(status, "State"); !state.empty()) task.state = state[0];
    tasks.push_back(std::move(task));
  });
  std::sort(tasks.begin(), tasks.end(), [](const Task& a, const Task& b) { return a.tid < b.tid; });
  return tasks;
}

std::string task_status(Pid pid, Tid tid) {
  return read_or_nothing(proc_path(pid, "task/" + std::to_string(static_cast<int>(tid)) + "/status"));
}

std::vector<Pid> children_of(Pid pid) {
  std::vector<Pid> children;
  each_task(pid, [&](Tid, const std::string& folder) {
    const std::string list = read_or_nothing(folder + "/children");
    std::string_view rest = list;
    std::uint64_t number = 0;
    while (take_number(rest, 10, ' ', number)) children.push_back(Pid{static_cast<std::int32_t>(number)});
  });
  return children;
}

namespace {

// A number of a file of that kind; 0 if it is not told.
std::uint64_t stat_number(const std::string& path, int wanted) {
  std::uint64_t number = 0;
  each_stat_field(read_or_nothing(path), wanted, [&](int field, std::string_view word) {
    if (field == wanted) std::from_chars(word.data(), word.data() + word.size(), number);
  });
  return number;
}

}  // namespace

std::uint64_t start_ticks(Pid pid) {
  constexpr int kStart = 22;
  return stat_number(proc_path(pid, "stat"), kStart);
}

std::int64_t age_ns(Pid pid) {
  const std::uint64_t start = start_ticks(pid);
  const long ticks_a_second = ::sysconf(_SC_CLK_TCK);
  if (start == 0 || ticks_a_second <= 0) return INT64_MAX;
  return clock_ns(CLOCK_BOOTTIME) - static_cast<std::int64_t>(start) * (1'000'000'000 / ticks_a_second);
}

std::uint64_t stack_start(Pid pid) {
  constexpr int kStackStart = 28;
  // (Of the process the kernel would add up what all its threads have used.)
  const auto number = static_cast<std::int32_t>(pid);
  return stat_number(proc_task_path(Tid{number}, "stat", number), kStackStart);
}

std::int64_t ended_children_cpu_ns(Pid pid) {
  constexpr int kUser = 16, kSystem = 17;
  std::int64_t ticks = 0;
  each_stat_field(read_or_nothing(proc_path(pid, "stat")), kSystem, [&](int field, std::string_view word) {
    std::int64_t number = 0;
    if (field >= kUser) std::from_chars(word.data(), word.data() + word.size(), number);
    ticks += number;
  });
  return ticks * (1'000'000'000 / ::sysconf(_SC_CLK_TCK));
}

bool is_alive(Pid pid) {
  const std::string status = read_or_nothing(proc_path(pid, "status"));
  const std::string_view state = status_field(status, "State");
  return !state.empty() && state[0] != 'Z' && state[0] != 'X';
}

bool is_kernel_thread(Pid pid) {
  constexpr int kFlags = 9;
  constexpr std::uint32_t kIsKernelThread = 0x00200000;  // PF_KTHREAD
  return (stat_number(proc_path(pid, "stat"), kFlags) & kIsKernelThread) != 0;
}

std::optional<Usage> parse_usage(std::string_view stat, std::int64_t page_bytes) {
  constexpr int kState = 3, kThreads = 20, kPages = 24;
  Usage usage;
  const bool is_whole = each_stat_field(stat, kPages, [&](int field, std::string_view word) {
    const char* end = word.data() + word.size();
    if (field == kState) usage.state = word[0];
    if (field == kThreads) std::from_chars(word.data(), end, usage.threads);
    if (field == kPages) std::from_chars(word.data(), end, usage.resident_bytes);
  });
  if (!is_whole) return std::nullopt;
  usage.resident_bytes *= page_bytes;
  return usage;
}

std::optional<Usage> usage_of(Pid pid) {
  std::optional<Usage> usage = parse_usage(read_or_nothing(proc_path(pid, "stat")), ::sysconf(_SC_PAGESIZE));
  clockid_t clock{};
  if (!usage || usage->state == 'Z' || usage->state == 'X') return std::nullopt;
  if (::clock_getcpuclockid(static_cast<pid_t>(pid), &clock) == 0) usage->cpu_ns = clock_ns(clock);
  return usage;
}

std::string command_line(Pid pid) {
  std::string words = read_or_nothing(proc_path(pid, "cmdline"));
  while (!words.empty() && words.back() == '\0') words.pop_back();
  std::replace(words.begin(), words.end(), '\0', ' ');
  return words;
}

std::string working_directory(Pid pid) { return read_link(proc_path(pid, "cwd")); }
std::string program_file(Pid pid) { return read_link(proc_path(pid, "exe")); }

Access access_to(Pid pid) {
  constexpr unsigned kSysPtrace = 19;  // CAP_SYS_PTRACE of linux/capability.h
  Access access;
  const std::string own = read_or_nothing("/proc/self/status");
  const std::string theirs = read_or_nothing(proc_path(pid, "status"));
  std::uint64_t capabilities = 0;
  const std::string_view effective = status_field(own, "CapEff");
  std::from_chars(effective.data(), effective.data() + effective.size(), capabilities, 16);
  access.has_capability = (capabilities >> kSysPtrace & 1U) != 0;
  access.is_root = ::geteuid() == 0;
  access.is_same_user = !theirs.empty() && status_field(own, "Uid") == status_field(theirs, "Uid") &&
                        status_field(own, "Gid") == status_field(theirs, "Gid");
  const std::string scope = read_or_nothing("/proc/sys/kernel/yama/ptrace_scope");
  std::from_chars(scope.data(), scope.data() + scope.size(), access.ptrace_scope);
  access.is_contained = ::access("/.dockerenv", F_OK) == 0 || ::access("/run/.containerenv", F_OK) == 0;
  return access;
}

}  // namespace plimsoll::os
