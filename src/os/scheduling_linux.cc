// os/scheduling_linux.cc: where and when the calling thread runs.
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <ctime>
#include <span>
#include <vector>

#include "base/clock.h"
#include "os/os.h"

namespace plimsoll::os {

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

int current_cpu() { return ::sched_getcpu(); }

int CpuSeat::cpu() const { return cpu_ >= 0 && current_cpu() == cpu_ ? cpu_ : -1; }

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

}  // namespace plimsoll::os
