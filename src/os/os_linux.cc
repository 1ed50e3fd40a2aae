#include <dirent.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "os/os.h"
#include "os/proc_files_linux.h"
#include "os/signal_handler.h"

namespace plimsoll::os {

Tid current_tid() { return Tid{static_cast<std::int32_t>(::syscall(SYS_gettid))}; }

std::vector<Tid> list_threads() {
  std::vector<Tid> threads;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir("/proc/self/task"), &::closedir);
  if (!directory) return threads;
  while (const dirent* entry = ::readdir(directory.get())) {
    std::int32_t tid = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, tid).ptr == end) threads.push_back(Tid{tid});
  }
  return threads;
}

std::size_t count_threads() {
  constexpr nlink_t kOfAnyDirectory = 2;
  struct stat tasks {};
  if (::stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink <= kOfAnyDirectory) return 0;
  return tasks.st_nlink - kOfAnyDirectory;
}

std::string thread_name(Tid tid) {
  std::string name = read_small_file(proc_task_path(tid, "comm"));
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

bool blocks_signal(Tid tid, int signal) {
  constexpr std::string_view kField = "\nSigBlk:\t";
  const std::string status = read_small_file(proc_task_path(tid, "status"));
  const std::size_t at = status.find(kField);
  std::uint64_t blocked = 0;
  if (at == std::string::npos) return false;
  std::from_chars(status.data() + at + kField.size(), status.data() + status.size(), blocked, 16);
  return (blocked >> static_cast<unsigned>(signal - 1) & 1U) != 0;
}

clockid_t thread_cpu_clock(Tid tid) {
  // The kernel's encoding of a dynamic clock: ~tid in the upper bits, "per thread" (4) and "CPUCLOCK_SCHED" (2) below.
  return static_cast<clockid_t>((~static_cast<unsigned>(tid) << 3U) | 6U);
}

std::int64_t resident_bytes() {
  const std::string statm = read_small_file("/proc/self/statm");
  const std::size_t space = statm.find(' ');
  std::int64_t pages = 0;
  if (space == std::string::npos) return 0;
  std::from_chars(statm.data() + space + 1, statm.data() + statm.size(), pages);
  return pages * ::sysconf(_SC_PAGESIZE);
}

std::int64_t ended_children_cpu_ns() {
  rusage usage{};
  if (::getrusage(RUSAGE_CHILDREN, &usage) != 0) return 0;
  const auto ns = [](const timeval& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_usec * 1'000; };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

unsigned scheduler_hz() {
  timespec resolution{};
  if (::clock_getres(CLOCK_MONOTONIC_COARSE, &resolution) != 0 || resolution.tv_nsec <= 0) return 100;
  return static_cast<unsigned>(1'000'000'000 / resolution.tv_nsec);
}

Result<int> unused_realtime_signal() {
  for (int signal = SIGRTMAX - 1; signal > SIGRTMIN; --signal)
    if (has_handler(signal, SIG_DFL)) return signal;
  return Error{ErrorKind::kUnsupported, "every real-time signal is in use by the program"};
}

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  if (::getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed) seed = static_cast<std::uint64_t>(monotonic_ns());
  return seed | 1U;
}

Result<std::string> random_hex(std::size_t bytes) {
  std::vector<unsigned char> random(bytes);
  if (::getrandom(random.data(), bytes, 0) != static_cast<ssize_t>(bytes)) return system_error("getrandom", errno);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits;
  for (const unsigned char byte : random) digits.append({kDigits[byte >> 4U], kDigits[byte & 15U]});
  return digits;
}

std::size_t raise_descriptor_limit() {
  constexpr rlim_t kEnough = 1U << 16U;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlimit raised{std::max(limit.rlim_cur, std::min(limit.rlim_max, kEnough)), limit.rlim_max};
  if (raised.rlim_cur > limit.rlim_cur && ::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  return std::min(limit.rlim_cur, kEnough);
}

void grow_descriptor_table() { move_out_of_the_way(UniqueFd(::eventfd(0, EFD_CLOEXEC))); }

bool pass_barriers() noexcept {
  const auto ask = [](int command) { return ::syscall(SYS_membarrier, command, 0, 0) == 0; };
  // A process registers once; so does the child of a fork.
  return ask(MEMBARRIER_CMD_PRIVATE_EXPEDITED) ||
         (ask(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && ask(MEMBARRIER_CMD_PRIVATE_EXPEDITED));
}

}  // namespace plimsoll::os
