// os/thread_tick_linux.cc: signals and traps that come as a thread uses CPU time, by perf events or timers.
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/clock.h"
#include "os/os.h"
#include "os/proc_files_linux.h"

// glibc before 2.40 has the member of sigevent that SIGEV_THREAD_ID needs under its private name only.
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid  // NOLINT(readability-identifier-naming): glibc's name
#endif

namespace plimsoll::os {
namespace {

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

bool is_sent_by_ticks(int signal, int code) {
  constexpr int kTrapPerf = 6;  // TRAP_PERF, which glibc does not name yet
  return signal == SIGTRAP ? code == kTrapPerf : code == SI_TIMER || code == POLL_IN || code == POLL_HUP;
}

TickOrigin origin_of(const siginfo_t& info) {
  if (!is_sent_by_ticks(info.si_signo, info.si_code)) return {};
  if (info.si_signo == SIGTRAP) {
    const std::uint64_t data = trap_data(info);
    if ((data & ~std::uint64_t{0xffffffffU}) != kTrapMark) return {};
    return {TickOrigin::Kind::kSlot, static_cast<std::uint32_t>(data)};
  }
  if (info.si_code == SI_TIMER) return {TickOrigin::Kind::kSlot, static_cast<std::uint32_t>(info.si_value.sival_int)};
  return {TickOrigin::Kind::kDescriptor, static_cast<std::uint32_t>(info.si_fd)};
}

}  // namespace plimsoll::os
