#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "os/doorbell.h"

namespace plimsoll::os {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

}  // namespace

void Doorbell::ring() noexcept {
  if (is_rung_.exchange(1, std::memory_order_acq_rel) != 0) return;
  const int error = errno;
  ::syscall(SYS_futex, &is_rung_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  errno = error;
}

bool Doorbell::wait_for(std::int64_t ns) noexcept {
  const timespec time{ns / kSecond, ns % kSecond};
  if (is_rung_.load(std::memory_order_relaxed) == 0)
    ::syscall(SYS_futex, &is_rung_, FUTEX_WAIT_PRIVATE, 0, &time, nullptr, 0);
  return is_rung_.exchange(0, std::memory_order_acq_rel) != 0;
}

}  // namespace plimsoll::os
