#include <dirent.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "os/os.h"
#include "os/process.h"
#include "os/signal_handler.h"

// glibc before 2.40 has the member of sigevent that SIGEV_THREAD_ID needs under its private name only.
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid  // NOLINT(readability-identifier-naming): glibc's name
#endif

namespace plimsoll::os {
namespace {

// `process`: 0 for this one.
std::string proc_task_path(Tid tid, const char* file, std::int32_t process = 0) {
  const std::string owner = process == 0 ? "self" : std::to_string(process);
  return "/proc/" + owner + "/task/" + std::to_string(static_cast<int>(tid)) + "/" + file;
}

// Reads a small file of /proc whole, in one go, as it may change; empty if it cannot. Few are not small: "status" has
// the numbers of all groups that somebody is in.
std::string read_small_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  for (const std::size_t most : {std::size_t{4096}, std::size_t{1} << 16U, std::size_t{1} << 20U}) {
    text.resize(most);
    const ssize_t size = fd.is_open() ? ::pread(fd.get(), text.data(), most, 0) : -1;
    text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    if (text.size() < most) break;
  }
  return text;
}

// Moves a descriptor to the high end of the table: programs expect the lowest free numbers for themselves, and those
// that use select() cannot use numbers above 1023 at all.
UniqueFd move_out_of_the_way(UniqueFd fd) {
  constexpr rlim_t kShare = 4;  // at most the top quarter of the table is ours
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return fd;
  const rlim_t top = std::min<rlim_t>(limit.rlim_cur, 1U << 16U);
  const int moved = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, static_cast<int>(top - top / kShare));
  return moved >= 0 ? UniqueFd(moved) : std::move(fd);
}

// In the upper half of what our traps bring along, above the slot.
constexpr std::uint64_t kTrapMark = std::uint64_t{0x506c696dU} << 32U;

// si_perf_data, which glibc does not name yet: it follows the address of a fault.
std::uint64_t trap_data(const siginfo_t& info) {
  constexpr std::size_t kOffset = 24;
  static_assert(offsetof(siginfo_t, si_addr) + sizeof(void*) == kOffset);
  std::uint64_t data = 0;
  std::memcpy(&data, reinterpret_cast<const char*>(&info) + kOffset, sizeof data);
  return data;
}

Result<UniqueFd> open_task_clock(const ThreadTick::Settings& settings) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_TASK_CLOCK;
  attr.sample_period = static_cast<std::uint64_t>(settings.first_ns);
  attr.disabled = 1;
  attr.wakeup_events = 1;
  const bool is_trap = settings.signal == SIGTRAP;
#ifdef PERF_ATTR_SIZE_VER7
  attr.sigtrap = is_trap ? 1 : 0;
  attr.remove_on_exec = is_trap ? 1 : 0;  // the kernel wants it: a trap must not meet a program that does not know it
  attr.sig_data = kTrapMark | settings.slot;
#else
  if (is_trap) return Error{ErrorKind::kUnsupported, "built without perf events that trap"};
#endif
  // exclude_kernel stays 0: with it, ticks that fall into system calls would be lost and their time attributed to
  // whatever runs next. Where only user-mode events are allowed, another clock is the better choice.
  const long fd = ::syscall(SYS_perf_event_open, &attr, static_cast<pid_t>(settings.tid), -1, -1,
                            static_cast<unsigned long>(PERF_FLAG_FD_CLOEXEC));
  if (fd < 0) return system_error("perf_event_open (task-clock)", errno);
  UniqueFd owned = move_out_of_the_way(UniqueFd(static_cast<int>(fd)));
  if (is_trap) return owned;
  const f_owner_ex owner{F_OWNER_TID, static_cast<pid_t>(settings.tid)};
  if (::fcntl(owned.get(), F_SETFL, O_ASYNC | O_NONBLOCK) != 0 ||
      ::fcntl(owned.get(), F_SETSIG, settings.signal) != 0 || ::fcntl(owned.get(), F_SETOWN_EX, &owner) != 0)
    return system_error("cannot route a perf event to its thread", errno);
  return owned;
}

Result<timer_t> create_timer(clockid_t clock, const ThreadTick::Settings& settings) {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = settings.signal;
  event.sigev_notify_thread_id = static_cast<pid_t>(settings.tid);
  event.sigev_value.sival_int = static_cast<int>(settings.slot);
  timer_t timer{};
  if (::timer_create(clock, &event, &timer) != 0) return system_error("timer_create", errno);
  return timer;
}

}  // namespace

const char* text(TickClock clock) {
  switch (clock) {
    case TickClock::kPerf: return "perf task-clock";
    case TickClock::kMonotonic: return "monotonic timer";
    case TickClock::kThreadCpu: return "thread CPU timer";
  }
  return "?";
}

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

// A small file of /proc, through a descriptor that is open already if there is one.
std::string_view ThreadProbe::read(const UniqueFd& open, const char* name, std::span<char> buffer) const {
  const UniqueFd here(open.is_open() ? -1 : ::open(proc_task_path(tid_, name, process_).c_str(), O_RDONLY | O_CLOEXEC));
  const int fd = open.is_open() ? open.get() : here.get();
  const ssize_t size = fd >= 0 ? ::pread(fd, buffer.data(), buffer.size(), 0) : -1;
  return {buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

ThreadProbe::ThreadProbe(Tid tid, Keep keep, std::int32_t process) : tid_(tid), process_(process) {
  if (keep == Keep::kClosed) return;
  const auto open = [&](const char* name) {
    UniqueFd fd(::open(proc_task_path(tid, name, process).c_str(), O_RDONLY | O_CLOEXEC));
    return fd.is_open() ? move_out_of_the_way(std::move(fd)) : UniqueFd{};
  };
  syscall_ = open("syscall");
  schedstat_ = open("schedstat");
  if (process == 0) return;
  status_ = open("status");
  stat_ = open("stat");
}

KernelWait ThreadProbe::wait() const {
  char buffer[256];
  return parse_wait(read(syscall_, "syscall", buffer));
}

std::int64_t ThreadProbe::ready_ns() const {
  const std::optional<Schedule> now = schedule();
  return now ? now->ready_ns : -1;
}

std::optional<Schedule> ThreadProbe::schedule() const {
  char buffer[128];
  const std::string_view text = read(schedstat_, "schedstat", buffer);
  const char* end = text.data() + text.size();
  Schedule now;
  const auto cpu = std::from_chars(text.data(), end, now.cpu_ns);
  if (cpu.ec != std::errc{} || cpu.ptr == end) return std::nullopt;
  const auto ready = std::from_chars(cpu.ptr + 1, end, now.ready_ns);
  if (ready.ec != std::errc{} || ready.ptr == end) return std::nullopt;
  if (std::from_chars(ready.ptr + 1, end, now.turns).ec != std::errc{}) return std::nullopt;
  return now;
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

std::optional<Place> ThreadProbe::place() const {
  char buffer[1024];
  return parse_place(read(stat_, "stat", buffer));
}

namespace {

// The kernel's own calls: those of the C library want to know beforehand how many CPUs there are.
constexpr std::size_t kCpuMaskBytes = 8192 / 8;

bool allow_cpus(std::span<const std::byte> mask) {
  return ::syscall(SYS_sched_setaffinity, 0, mask.size(), mask.data()) == 0;
}

}  // namespace

bool CpuSeat::move_to(int cpu) {
  if (cpu < 0 || static_cast<std::size_t>(cpu) >= kCpuMaskBytes * 8) return false;
  if (before_.empty()) {
    before_.resize(kCpuMaskBytes);
    const long size = ::syscall(SYS_sched_getaffinity, 0, before_.size(), before_.data());
    if (size <= 0) return before_.clear(), false;
    before_.resize(static_cast<std::size_t>(size));
  }
  const auto place = static_cast<std::size_t>(cpu) / 8;
  const auto bit = std::byte{1} << static_cast<unsigned>(cpu % 8);
  if (place >= before_.size() || (before_[place] & bit) == std::byte{0}) return false;
  std::vector<std::byte> only(before_.size());
  only[place] = bit;
  if (!allow_cpus(only)) return false;
  cpu_ = cpu;
  return true;
}

int CpuSeat::cpu() const { return cpu_ >= 0 && ::sched_getcpu() == cpu_ ? cpu_ : -1; }

CpuSeat::~CpuSeat() {
  if (cpu_ >= 0) (void)allow_cpus(before_);
}

void sleep_until(std::int64_t time_ns) {
  const timespec until = timespec_of(time_ns);
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) continue;
}

// (In Linux, the priority of process 0 is that of the calling thread.)
Haste::Haste() : before_(::getpriority(PRIO_PROCESS, 0)) { (void)::setpriority(PRIO_PROCESS, 0, -20); }
Haste::~Haste() { (void)::setpriority(PRIO_PROCESS, 0, before_); }

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

namespace {

// struct sched_attr of the kernel, which the C library does not have.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0;
  std::uint64_t deadline_ns = 0, period_ns = 0;
};

// For the calling thread. Since Linux 6.12 each thread may choose the length of its turns, and who has shorter ones
// takes the place of who runs when it wakes; else it waits until that has had its own, of 3 ms (EEVDF's
// "PREEMPT_SHORT", kernel/sched/fair.c). It gets no more time for that. Before, this does nothing.
void take_short_turns() {
  constexpr std::uint64_t kShortest = 100'000;  // that the kernel knows
  SchedulingAttributes attributes;
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0U) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;  // somebody has chosen
  attributes.size = sizeof attributes;
  attributes.runtime_ns = kShortest;
  (void)::syscall(SYS_sched_setattr, 0, &attributes, 0U);
}

}  // namespace

void wake_on_time() {
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  take_short_turns();
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

ThreadTick::ThreadTick(ThreadTick&& other) noexcept
    : kind_(std::exchange(other.kind_, Kind::kNone)),
      clock_(other.clock_),
      fd_(std::move(other.fd_)),
      timer_(other.timer_) {}

ThreadTick& ThreadTick::operator=(ThreadTick&& other) noexcept {
  if (this != &other) {
    disarm();
    kind_ = std::exchange(other.kind_, Kind::kNone);
    clock_ = other.clock_;
    fd_ = std::move(other.fd_);
    timer_ = other.timer_;
  }
  return *this;
}

ThreadTick::~ThreadTick() { disarm(); }

Result<ThreadTick> ThreadTick::create(TickClock clock, const Settings& settings) {
  ThreadTick tick;
  tick.clock_ = clock;
  if (clock == TickClock::kPerf) {
    Result<UniqueFd> fd = open_task_clock(settings);
    if (!fd.ok()) return fd.error();
    tick.fd_ = fd.take();
    tick.kind_ = Kind::kPerfEvent;
    return tick;  // started by restart(), once the caller can be found by its descriptor
  }
  Result<timer_t> timer =
      create_timer(clock == TickClock::kMonotonic ? CLOCK_MONOTONIC : thread_cpu_clock(settings.tid), settings);
  if (!timer.ok()) return timer.error();
  tick.timer_ = timer.value();
  tick.kind_ = Kind::kPosixTimer;
  return tick;
}

bool ThreadTick::restart(std::int64_t first_ns, std::int64_t period_ns) const {
  if (kind_ == Kind::kPerfEvent) {
    auto period = static_cast<std::uint64_t>(first_ns);
    return ::ioctl(fd_.get(), PERF_EVENT_IOC_PERIOD, &period) == 0 && ::ioctl(fd_.get(), PERF_EVENT_IOC_ENABLE, 0) == 0;
  }
  if (kind_ == Kind::kPosixTimer) {
    const itimerspec when{timespec_of(period_ns), timespec_of(first_ns)};
    return ::timer_settime(timer_, 0, &when, nullptr) == 0;
  }
  return false;
}

bool ThreadTick::set_period(std::int64_t period_ns) const {
  if (kind_ == Kind::kPerfEvent) {
    auto period = static_cast<std::uint64_t>(period_ns);
    return ::ioctl(fd_.get(), PERF_EVENT_IOC_PERIOD, &period) == 0;
  }
  return restart(period_ns, period_ns);
}

bool ThreadTick::pause() const {
  if (kind_ == Kind::kPerfEvent) return ::ioctl(fd_.get(), PERF_EVENT_IOC_DISABLE, 0) == 0;
  if (kind_ == Kind::kPosixTimer) {
    const itimerspec never{};
    return ::timer_settime(timer_, 0, &never, nullptr) == 0;
  }
  return false;
}

void ThreadTick::disarm() {
  const Kind kind = std::exchange(kind_, Kind::kNone);
  if (kind == Kind::kPerfEvent) {
    ::ioctl(fd_.get(), PERF_EVENT_IOC_DISABLE, 0);
    fd_.reset();
  } else if (kind == Kind::kPosixTimer) {
    ::timer_delete(timer_);
  }
}

void ThreadTick::forget() {
  kind_ = Kind::kNone;
  fd_.reset();
}

bool has_trap_ticks() {
  return open_task_clock({.tid = current_tid(), .signal = SIGTRAP, .first_ns = 1'000'000'000}).ok();
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

UniqueFd open_idle_counter() {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_TASK_CLOCK;
  attr.disabled = 1;
  attr.exclude_kernel = 1;  // of oneself, which everybody may count
  return UniqueFd(static_cast<int>(
      ::syscall(SYS_perf_event_open, &attr, 0, -1, -1, static_cast<unsigned long>(PERF_FLAG_FD_CLOEXEC))));
}

TickOrigin origin_of(const siginfo_t& info) {
  constexpr int kTrapPerf = 6;  // TRAP_PERF, which glibc does not name yet
  if (info.si_signo == SIGTRAP) {
    const std::uint64_t data = trap_data(info);
    if (info.si_code != kTrapPerf || (data & ~std::uint64_t{0xffffffffU}) != kTrapMark) return {};
    return {TickOrigin::Kind::kSlot, static_cast<std::uint32_t>(data)};
  }
  if (info.si_code == SI_TIMER) return {TickOrigin::Kind::kSlot, static_cast<std::uint32_t>(info.si_value.sival_int)};
  if (info.si_code == POLL_IN || info.si_code == POLL_HUP)
    return {TickOrigin::Kind::kDescriptor, static_cast<std::uint32_t>(info.si_fd)};
  return {};
}

bool pass_barriers() noexcept {
  const auto ask = [](int command) { return ::syscall(SYS_membarrier, command, 0, 0) == 0; };
  // A process registers once; so does the child of a fork.
  return ask(MEMBARRIER_CMD_PRIVATE_EXPEDITED) ||
         (ask(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && ask(MEMBARRIER_CMD_PRIVATE_EXPEDITED));
}

}  // namespace plimsoll::os
