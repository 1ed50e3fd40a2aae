// os/thread_probe_linux.cc: what the kernel knows of a thread, from its files in /proc.
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "os/os.h"
#include "os/proc_files_linux.h"
#include "os/process.h"

namespace plimsoll::os {

// A small file of /proc, through a descriptor that is open already if there is one.
std::string_view ThreadProbe::read(const UniqueFd& open, const char* name, std::span<char> buffer) const {
  const UniqueFd here(open.is_open() ? -1 : ::open(proc_task_path(tid_, name, process_).c_str(), O_RDONLY | O_CLOEXEC));
  const int fd = open.is_open() ? open.get() : here.get();
  const ssize_t size = fd >= 0 ? ::pread(fd, buffer.data(), buffer.size(), 0) : -1;
  return {buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

UniqueFd ThreadProbe::keep_open(const char* name) const {
  UniqueFd fd(::open(proc_task_path(tid_, name, process_).c_str(), O_RDONLY | O_CLOEXEC));
  return fd.is_open() ? move_out_of_the_way(std::move(fd)) : UniqueFd{};
}

ThreadProbe::ThreadProbe(Tid tid, Keep keep, std::int32_t process) : tid_(tid), process_(process) {
  if (keep == Keep::kClosed) return;
  syscall_ = keep_open("syscall");
  schedstat_ = keep_open("schedstat");
  if (process == 0) return;
  status_ = keep_open("status");
  stat_ = keep_open("stat");
}

KernelWait ThreadProbe::wait() const {
  char buffer[256], function[128];
  const std::string_view call = read(syscall_, "syscall", buffer);
  return parse_wait(call, goes_on_waiting(call) ? read({}, "wchan", function) : std::string_view{});
}

std::int64_t ThreadProbe::ready_ns() const {
  const std::optional<Schedule> now = schedule();
  return now ? now->ready_ns : -1;
}

std::optional<Schedule> ThreadProbe::schedule() const {
  char buffer[128];
  const std::string_view text = read(schedstat_, "schedstat", buffer);
  // Three numbers, which are asked for of each thread at each look: std::from_chars takes three times as long.
  std::uint64_t numbers[3] = {};
  std::size_t at = 0;
  for (std::uint64_t& number : numbers) {
    const std::size_t start = at;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
      number = 10 * number + static_cast<std::uint64_t>(text[at] - '0');
    if (at++ == start) return std::nullopt;
  }
  return Schedule{static_cast<std::int64_t>(numbers[0]), static_cast<std::int64_t>(numbers[1]), numbers[2]};
}

bool ThreadProbe::has_ended() const {
  char byte = 0;
  // (By its file if there is one: another thread may have got its number.)
  if (schedstat_.is_open()) return ::pread(schedstat_.get(), &byte, 1, 0) < 0;
  return ::access(proc_task_path(tid_, "", process_).c_str(), F_OK) != 0 && (errno == ENOENT || errno == ESRCH);
}

std::optional<Departures> ThreadProbe::departures() const {
  char buffer[4096];
  std::string_view text = read(status_, "status", buffer);
  std::string whole;
  if (text.size() == sizeof buffer) text = whole = read_small_file(proc_task_path(tid_, "status", process_));
  const auto count = [&](std::string_view field, std::uint64_t& out) {
    const std::size_t at = text.find(field);
    if (at == std::string_view::npos) return false;
    const char* from = text.data() + at + field.size();
    return std::from_chars(from, text.data() + text.size(), out).ec == std::errc{};
  };
  Departures times;
  if (!count("\nvoluntary_ctxt_switches:\t", times.voluntary) ||
      !count("\nnonvoluntary_ctxt_switches:\t", times.involuntary))
    return std::nullopt;
  return times;
}

std::optional<Place> parse_place(std::string_view line) {
  constexpr int kState = 3, kCpu = 39, kPolicy = 41;
  Place place;
  int policy = 0;
  bool is_fine = true;
  const auto number = [&](std::string_view word, int& out) {
    is_fine = is_fine && std::from_chars(word.data(), word.data() + word.size(), out).ec == std::errc{};
  };
  const bool is_whole = each_stat_field(line, kPolicy, [&](int field, std::string_view word) {
    if (field == kState) place.is_ready = word == "R";
    if (field == kCpu) number(word, place.cpu);
    if (field == kPolicy) number(word, policy);
  });
  if (!is_whole || !is_fine) return std::nullopt;
  place.is_realtime = policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
  return place;
}

std::optional<std::int64_t> ThreadProbe::counted_ns() const {
  // "se.exec_start                                :       6855399.754201", in milliseconds.
  constexpr std::string_view kField = "se.exec_start", kAfter = " :";
  char buffer[512];
  if (stat_.is_open() && !sched_.is_open()) sched_ = keep_open("sched");
  const std::string_view text = read(sched_, "sched", buffer);
  std::size_t at = text.find(kField);
  at = at == std::string_view::npos ? at : text.find_first_not_of(kAfter, at + kField.size());
  if (at == std::string_view::npos) return std::nullopt;
  const char* const end = text.data() + text.size();
  std::int64_t ms = 0, ns = 0;
  const auto whole = std::from_chars(text.data() + at, end, ms);
  if (whole.ec != std::errc{} || whole.ptr == end || *whole.ptr != '.') return std::nullopt;
  const auto rest = std::from_chars(whole.ptr + 1, end, ns);
  constexpr std::ptrdiff_t kDigits = 6;
  if (rest.ec != std::errc{} || rest.ptr - (whole.ptr + 1) != kDigits) return std::nullopt;
  return ms * 1'000'000 + ns;
}

std::optional<Place> ThreadProbe::place() const {
  char buffer[1024];
  return parse_place(read(stat_, "stat", buffer));
}

}  // namespace plimsoll::os
