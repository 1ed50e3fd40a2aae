#include "capture/interrupted_call.h"

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "memory/local.h"

namespace plimsoll::capture {

#if defined(__x86_64__)

namespace {

constexpr std::array<std::uint8_t, 2> kSystemCall{0x0f, 0x05};

// Whether there is such an instruction, and it was begun before: then it has left its end in RCX. (Whether an interrupt
// ever finds a thread right before one is doubtful: of 41,000 ticks in loops of reads none did.)
bool was_begun(const gregset_t& registers) {
  constexpr memory::LocalReader kMemory;
  const auto at = static_cast<std::uint64_t>(registers[REG_RIP]);
  if (static_cast<std::uint64_t>(registers[REG_RCX]) != at + kSystemCall.size()) return false;
  for (std::size_t i = 0; i < kSystemCall.size(); ++i) {
    std::uint8_t byte = 0;
    if (!kMemory.load(Address{at + i}, byte) || byte != kSystemCall[i]) return false;
  }
  return true;
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

}  // namespace

void end_interrupted_call(ucontext_t& context) noexcept {
  gregset_t& registers = context.uc_mcontext.gregs;
  if (!was_begun(registers) || !can_end(registers)) return;
  registers[REG_RIP] += std::ssize(kSystemCall);
  registers[REG_RAX] = -EINTR;
}

#else

void end_interrupted_call(ucontext_t& /*context*/) noexcept {}

#endif

}  // namespace plimsoll::capture
