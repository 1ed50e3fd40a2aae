#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "os/os.h"

namespace plimsoll::os {
namespace {

// The number of the call and its six arguments, the stack pointer and the instruction, as in /proc/TID/syscall:
// "7 0x7ffd5a 0x1 ... 0x7ffd48 0x7f31"; without arguments for a thread that was stopped outside of any call: "-1 ...".
struct SystemCall {
  long number = -1;
  std::array<std::uint64_t, 6> arguments{};
  std::uint64_t stack_pointer = 0;
  std::uint64_t instruction = 0;
};

std::optional<SystemCall> parse_system_call(std::string_view text) {
  constexpr std::string_view kPrefix = " 0x";
  SystemCall call;
  const char* end = text.data() + text.size();
  const auto number = std::from_chars(text.data(), end, call.number);
  if (number.ec != std::errc{}) return std::nullopt;
  const char* at = number.ptr;
  std::size_t words = 0;
  while (std::string_view(at, static_cast<std::size_t>(end - at)).starts_with(kPrefix)) {
    std::uint64_t word = 0;
    at = std::from_chars(at + kPrefix.size(), end, word, 16).ptr;
    if (words < call.arguments.size()) call.arguments[words] = word;
    call.stack_pointer = std::exchange(call.instruction, word);
    ++words;
  }
  return call;
}

// Calls that the kernel begins again by itself after a stop, with the same arguments, or that ThreadStopper begins
// again and that have no limit on their time. (Of those that the kernel goes on with by restart_syscall, nobody could
// tell afterwards what the thread waits in; and those that have written or received something already end early.)
bool is_resumable(const SystemCall& call) {
  const auto& at = call.arguments;
  switch (call.number) {
    case SYS_futex: {
      constexpr std::uint64_t kWait = 0, kWaitBitset = 9, kCommand = 127;
      return ((at[1] & kCommand) == kWait || (at[1] & kCommand) == kWaitBitset) && at[3] == 0;
    }
    case SYS_clock_nanosleep: return (at[1] & TIMER_ABSTIME) != 0;
    case SYS_recvfrom: return (at[3] & MSG_WAITALL) == 0;
    case SYS_recvmsg: return (at[2] & MSG_WAITALL) == 0;
    case SYS_epoll_pwait: return static_cast<std::int32_t>(at[3]) < 0 && at[4] == 0;
#ifdef SYS_epoll_wait
    case SYS_epoll_wait: return static_cast<std::int32_t>(at[3]) < 0;
    case SYS_select:
    case SYS_pause:
#endif
    case SYS_pselect6:
    case SYS_ppoll:
    case SYS_rt_sigsuspend:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_flock:
    case SYS_read:
    case SYS_readv:
    case SYS_accept:
    case SYS_accept4: return true;
    default: return false;
  }
}

// Not all calls exist on all architectures: aarch64 has none of the older ones.
KernelWait::Kind kind_of(const SystemCall& call) {
  using Kind = KernelWait::Kind;
  switch (call.number) {
    case SYS_futex:
#ifdef SYS_futex_waitv
    case SYS_futex_waitv:
#endif
      return Kind::kFutex;
    case SYS_flock: return Kind::kFileLock;
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
      return Kind::kSleep;
      // Without anything to wait for, they are a sleep; so does time.sleep up to Python 3.10.
#ifdef SYS_select
    case SYS_select:
#endif
    case SYS_pselect6: return call.arguments[0] == 0 ? Kind::kSleep : Kind::kIo;
#ifdef SYS_poll
    case SYS_poll:
#endif
    case SYS_ppoll: return call.arguments[1] == 0 ? Kind::kSleep : Kind::kIo;
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
#endif
    case SYS_epoll_pwait:
#ifdef SYS_epoll_pwait2
    case SYS_epoll_pwait2:
#endif
#ifdef SYS_open
    case SYS_open:
#endif
    case SYS_openat:
    case SYS_read:
    case SYS_readv:
    case SYS_pread64:
    case SYS_preadv:
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_pwritev:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_sync:
    case SYS_sendfile:
    case SYS_copy_file_range:
    case SYS_splice:
    case SYS_connect:
    case SYS_accept:
    case SYS_accept4:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_io_getevents:
    case SYS_io_uring_enter: return Kind::kIo;
    default: return Kind::kOther;
  }
}

// Of restart_syscall, which has the arguments of the call that it goes on with: futex, poll, nanosleep or its like.
KernelWait::Kind kind_of_rest(const SystemCall& call, std::string_view function) {
  using Kind = KernelWait::Kind;
  const auto is_in = [&](std::string_view part) { return function.find(part) != std::string_view::npos; };
  if (is_in("futex")) return Kind::kFutex;
  if (is_in("nanosleep")) return Kind::kSleep;
  if (is_in("poll")) return call.arguments[1] == 0 ? Kind::kSleep : Kind::kIo;
  return Kind::kOther;
}

}  // namespace

bool goes_on_waiting(std::string_view line) {
  long number = -1;
  return std::from_chars(line.data(), line.data() + line.size(), number).ec == std::errc{} &&
         number == SYS_restart_syscall;
}

KernelWait parse_wait(std::string_view line, std::string_view function) {
  if (line.empty()) return {};
  if (line.starts_with("running")) return {KernelWait::Kind::kRunnable, {}};
  const std::optional<SystemCall> call = parse_system_call(line);
  if (!call) return {};
  const KernelWait::Kind kind = call->number == SYS_restart_syscall ? kind_of_rest(*call, function) : kind_of(*call);
  return {kind, kind == KernelWait::Kind::kFutex ? Address{call->arguments[0]} : Address{}, Address{call->instruction},
          Address{call->stack_pointer}, is_resumable(*call)};
}

}  // namespace plimsoll::os
