// os/process_files_linux.cc: files of other processes, by /proc/PID/root, opened by threads that are as little
// privileged as those processes.
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include "os/proc_files_linux.h"
#include "os/process_files.h"

namespace plimsoll::os {
namespace {

constexpr int kForReading = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

// Numbers separated by blanks.
std::vector<std::uint32_t> numbers_in(std::string_view text) {
  std::vector<std::uint32_t> numbers;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return numbers;
    numbers.push_back(number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
}

std::string proc_path(Pid pid, const char* file) {
  return "/proc/" + std::to_string(static_cast<int>(pid)) + "/" + file;
}

std::optional<FileUser> file_user_of(Pid pid) {
  std::optional<FileUser> user = parse_file_user(read_small_file(proc_path(pid, "status")));
  // Elsewhere they are rights over what belongs to that namespace.
  const std::string space = read_link(proc_path(pid, "ns/user"));
  if (user && (space.empty() || space != read_link("/proc/self/ns/user"))) user->capabilities = 0;
  return user;
}

// Makes of the calling thread, and of no other, what opens files as that user. It cannot be undone. (The functions of
// the C library would do it to all threads.)
bool become(const FileUser& user) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> rights{};
  if (::syscall(SYS_capget, &header, rights.data()) != 0) return false;
  // Processes of one user and group have no secrets from each other, whatever other groups they are in.
  const bool is_own = user.user == ::geteuid() && user.group == ::getegid();
  if (::syscall(SYS_setgroups, user.groups.size(), user.groups.data()) != 0 && !is_own) return false;
  constexpr std::uint32_t kNobody = ~std::uint32_t{0};  // who nobody can become: only tells who it is
  ::syscall(SYS_setfsgid, user.group);
  ::syscall(SYS_setfsuid, user.user);
  if (static_cast<std::uint32_t>(::syscall(SYS_setfsgid, kNobody)) != user.group ||
      static_cast<std::uint32_t>(::syscall(SYS_setfsuid, kNobody)) != user.user)
    return false;
  rights[0].effective &= static_cast<std::uint32_t>(user.capabilities);
  rights[1].effective &= static_cast<std::uint32_t>(user.capabilities >> 32U);
  return ::syscall(SYS_capset, &header, rights.data()) == 0;
}

// The same as open_below, by a system call of Linux 5.6.
int open_below_by_kernel(int root, const std::string& name) {
  constexpr long kOpenat2 = 437;  // of all processors; headers may be older than the kernel
  constexpr std::uint64_t kNoMagicLinks = 0x02, kInRoot = 0x10;
  constexpr int kMostTries = 16;
  struct {
    std::uint64_t flags, mode, resolve;
  } how{static_cast<std::uint64_t>(kForReading), 0, kNoMagicLinks | kInRoot};
  int fd = -1;
  // (While somebody moves directories the kernel does not know where ".." is.)
  for (int i = 0; i < kMostTries && (i == 0 || (fd < 0 && errno == EAGAIN)); ++i)
    fd = static_cast<int>(::syscall(kOpenat2, root, name.c_str(), &how, sizeof how));
  return fd;
}

// The same, step by step. Without any links, which would have to be followed by hand.
UniqueFd open_below_by_steps(int root, std::string_view name) {
  UniqueFd at(::fcntl(root, F_DUPFD_CLOEXEC, 0));
  while (at.is_open()) {
    name.remove_prefix(std::min(name.find_first_not_of('/'), name.size()));
    const std::string step(name.substr(0, name.find('/')));
    name.remove_prefix(step.size());
    if (step.empty() || step == "..") return {};
    if (name.empty()) return UniqueFd(::openat(at.get(), step.c_str(), kForReading | O_NOFOLLOW));
    at.reset(::openat(at.get(), step.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  return {};
}

// A file for reading; neither ".." nor a link leads above the root, and no link of /proc to what somebody has open is
// followed.
UniqueFd open_below(int root, const std::string& name) {
  UniqueFd fd(open_below_by_kernel(root, name));
  // (Containers forbid system calls that they do not know.)
  const bool is_unknown = !fd.is_open() && (errno == ENOSYS || errno == EPERM);
  return is_unknown ? open_below_by_steps(root, name) : std::move(fd);
}

// What a thread is to open, and what came of it.
struct Opening {
  int root = -1;
  const std::string& name;
  const FileUser& user;
  UniqueFd file;
};

void* run_opening(void* argument) {
  auto& opening = *static_cast<Opening*>(argument);
  if (become(opening.user)) opening.file = open_below(opening.root, opening.name);
  return nullptr;
}

// In a thread that lasts no longer: what it has become is nobody's afterwards.
UniqueFd open_as(const FileUser& user, int root, const std::string& name) {
  Opening opening{root, name, user, {}};
  pthread_t thread{};
  if (::pthread_create(&thread, nullptr, &run_opening, &opening) != 0) return {};
  ::pthread_join(thread, nullptr);
  return std::move(opening.file);
}

}  // namespace

std::optional<FileUser> parse_file_user(std::string_view status) {
  constexpr std::size_t kForFiles = 3;  // after the real, the effective and the saved one
  const std::vector<std::uint32_t> users = numbers_in(status_field(status, "Uid"));
  const std::vector<std::uint32_t> groups = numbers_in(status_field(status, "Gid"));
  const std::string_view rights = status_field(status, "CapEff");
  FileUser user;
  const bool has_rights =
      std::from_chars(rights.data(), rights.data() + rights.size(), user.capabilities, 16).ec == std::errc{};
  if (users.size() <= kForFiles || groups.size() <= kForFiles || !has_rights) return std::nullopt;
  user.user = users[kForFiles];
  user.group = groups[kForFiles];
  user.groups = numbers_in(status_field(status, "Groups"));
  return user;
}

void ProcessFiles::open_root_of(Pid pid) {
  const std::string root = proc_path(pid, "root");
  root_.reset(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  // Both as we see them: in a file system of its own it has the directory where we see none.
  std::string top = read_link(root);
  std::string directory = working_directory(pid);
  if (top == "/") top.clear();
  if (directory.starts_with(top) && directory.substr(top.size()).starts_with('/'))
    directory_ = directory.substr(top.size());
  else if (directory == top)
    directory_ = "";
}

void ProcessFiles::add(Pid pid) {
  processes_.push_back(pid);
  look_again();
}

void ProcessFiles::look_again() {
  std::erase_if(processes_, [&](Pid pid) {
    const std::optional<FileUser> user = file_user_of(pid);
    if (user && std::find(users_.begin(), users_.end(), *user) == users_.end()) users_.push_back(*user);
    return !user;
  });
}

ProcessFiles::ProcessFiles(std::vector<FileUser> users)
    : root_(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)),
      directory_(working_directory(Pid{::getpid()})),
      users_(std::move(users)) {}

UniqueFd ProcessFiles::open(std::string_view name) const {
  if (!root_.is_open() || name.empty() || (name.front() != '/' && !directory_)) return {};
  const std::string whole = name.front() == '/' ? std::string(name) : *directory_ + "/" + std::string(name);
  UniqueFd file;
  for (const FileUser& user : users_) {
    file = open_as(user, root_.get(), whole);
    if (!file.is_open()) return {};
  }
  struct stat facts {};
  if (!file.is_open() || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return {};
  return file;
}

}  // namespace plimsoll::os
