#include "capture/interrupted_call.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>

#include "capture/call_numbers.h"
#include "memory/local.h"
#include "os/ended_calls_linux.h"

namespace plimsoll::capture {

#if defined(__x86_64__)

namespace {

constexpr std::array<std::uint8_t, 2> kSystemCall{0x0f, 0x05};

// Of pselect6, whose last argument is where the address of the mask is.
bool has_mask(const gregset_t& registers) {
  constexpr memory::LocalReader kMemory;
  const auto at = static_cast<std::uint64_t>(registers[REG_R9]);
  std::uint64_t mask = 0;
  return at != 0 && (!kMemory.load(Address{at}, mask) || mask != 0);
}

// Whether it is one of those that end with EINTR whatever a signal asks for, and have done nothing then. Not with a
// signal mask: a signal that comes by that must end them.
bool can_begin_anew(std::int64_t number, const gregset_t& registers) {
  constexpr std::array kUndoneByHandlers{SYS_poll,  SYS_select, SYS_nanosleep, SYS_clock_nanosleep,
                                         SYS_pause, SYS_msgrcv, SYS_msgsnd,    SYS_futex};
  if (os::is_undone_by_a_stop(number, static_cast<unsigned long>(registers[REG_R8]))) return true;
  if (number == SYS_ppoll) return registers[REG_R10] == 0;
  if (number == SYS_pselect6) return !has_mask(registers);
  return std::find(kUndoneByHandlers.begin(), kUndoneByHandlers.end(), number) != kUndoneByHandlers.end();
}

// Whether there is a call, and it was begun: then it has left its end in RCX. (Whether an interrupt ever finds a thread
// right before one is doubtful: of 41,000 ticks in loops of reads none did.)
bool was_begun(const gregset_t& registers, std::uint64_t at) {
  constexpr memory::LocalReader kMemory;
  if (static_cast<std::uint64_t>(registers[REG_RCX]) != at + kSystemCall.size()) return false;
  for (std::size_t i = 0; i < kSystemCall.size(); ++i) {
    std::uint8_t byte = 0;
    if (!kMemory.load(Address{at + i}, byte) || byte != kSystemCall[i]) return false;
  }
  return true;
}

// Whether a signal has ended it.
bool has_ended_call(const gregset_t& registers) {
  const auto end = static_cast<std::uint64_t>(registers[REG_RIP]);
  return registers[REG_RAX] == -EINTR && was_begun(registers, end - kSystemCall.size());
}

// Whether it is one of those that wait, and that a signal can end. Others begin anew whatever a signal asks for, as
// fork does, or never do, as nanosleep.
bool can_end(const gregset_t& registers) {
  constexpr std::array kWaiting{
      SYS_read,      SYS_write,        SYS_readv,          SYS_writev,   SYS_pread64, SYS_pwrite64, SYS_preadv,
      SYS_pwritev,   SYS_preadv2,      SYS_pwritev2,       SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg, SYS_sendto,
      SYS_sendmsg,   SYS_sendmmsg,     SYS_accept,         SYS_accept4,  SYS_connect, SYS_wait4,    SYS_waitid,
      SYS_open,      SYS_openat,       SYS_fcntl,          SYS_flock,    SYS_ioctl,   SYS_sendfile, SYS_splice,
      SYS_getrandom, SYS_mq_timedsend, SYS_mq_timedreceive};
  const greg_t number = registers[REG_RAX];
  if (number == SYS_futex) {
    // <linux/futex.h>: to wait, but not for a lock with priority inheritance.
    constexpr greg_t kOperation = 127, kWait = 0, kWaitBitset = 9;
    const greg_t operation = registers[REG_RSI] & kOperation;
    return operation == kWait || operation == kWaitBitset;
  }
  return std::find(kWaiting.begin(), kWaiting.end(), number) != kWaiting.end();
}

// Whether another than `tick` is pending that the code at `context` takes, once the handler that asks has returned.
bool awaits_signal(const ucontext_t& context, int tick) {
  std::uint64_t pending = 0, blocked = 0;
  if (::syscall(SYS_rt_sigpending, &pending, sizeof pending) != 0) return true;
  std::memcpy(&blocked, &context.uc_sigmask, sizeof blocked);
  return (pending & ~blocked & ~(std::uint64_t{1} << static_cast<unsigned>(tick - 1))) != 0;
}

}  // namespace

void end_interrupted_call(ucontext_t& context) noexcept {
  gregset_t& registers = context.uc_mcontext.gregs;
  if (!was_begun(registers, static_cast<std::uint64_t>(registers[REG_RIP])) || !can_end(registers)) return;
  registers[REG_RIP] += std::ssize(kSystemCall);
  registers[REG_RAX] = -EINTR;
}

void end_call_for_pending(ucontext_t& context, int tick) noexcept {
  const gregset_t& registers = context.uc_mcontext.gregs;
  if (was_begun(registers, static_cast<std::uint64_t>(registers[REG_RIP])) && awaits_signal(context, tick))
    end_interrupted_call(context);
}

bool has_interrupted_call(const ucontext_t& context) noexcept {
  const gregset_t& registers = context.uc_mcontext.gregs;
  return has_ended_call(registers) || was_begun(registers, static_cast<std::uint64_t>(registers[REG_RIP]));
}

void begin_call_anew(ucontext_t& context, int tick) noexcept {
  gregset_t& registers = context.uc_mcontext.gregs;
  if (!has_ended_call(registers)) return;
  const std::int64_t number = number_of_ended_call(context);
  if (!can_begin_anew(number, registers) || awaits_signal(context, tick)) return;
  // Only for what is left, which the kernel has told if it was to; select and ppoll have it where the limit was.
  if (number == SYS_nanosleep && registers[REG_RSI] != 0) registers[REG_RDI] = registers[REG_RSI];
  if (number == SYS_clock_nanosleep && registers[REG_R10] != 0 && (registers[REG_RSI] & TIMER_ABSTIME) == 0)
    registers[REG_RDX] = registers[REG_R10];
  registers[REG_RIP] -= std::ssize(kSystemCall);
  registers[REG_RAX] = number;
}

#else

void end_interrupted_call(ucontext_t& /*context*/) noexcept {}
void end_call_for_pending(ucontext_t& /*context*/, int /*tick*/) noexcept {}
bool has_interrupted_call(const ucontext_t& /*context*/) noexcept { return false; }
void begin_call_anew(ucontext_t& /*context*/, int /*tick*/) noexcept {}

#endif

}  // namespace plimsoll::capture
