#include "capture/interrupted_call.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

namespace plimsoll::capture {
namespace {

#if defined(__x86_64__)

constexpr greg_t kCallBytes = 2;

// Where a thread goes on after a tick: at the system call with this number, or behind it with a result.
struct Thread {
  std::array<std::uint8_t, 2> code{0x0f, 0x05};
  ucontext_t context{};

  explicit Thread(greg_t number) {
    registers()[REG_RIP] = start();
    registers()[REG_RCX] = start() + kCallBytes;  // as the call leaves it that was begun
    registers()[REG_RAX] = number;
  }
  gregset_t& registers() { return context.uc_mcontext.gregs; }
  [[nodiscard]] greg_t start() const { return static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(code.data())); }
  bool is_ended() {
    end_interrupted_call(context);
    return registers()[REG_RIP] == start() + kCallBytes && registers()[REG_RAX] == -EINTR;
  }
  bool is_as_it_was(greg_t number) const {
    return context.uc_mcontext.gregs[REG_RIP] == start() && context.uc_mcontext.gregs[REG_RAX] == number;
  }
};

TEST(InterruptedCall, EndsIfItWaitsAndWasBegunBefore) {
  for (const greg_t number : {SYS_read, SYS_recvfrom, SYS_wait4}) EXPECT_TRUE(Thread(number).is_ended()) << number;
}

TEST(InterruptedCall, GoesOnIfItHasNotBegun) {
  Thread thread(SYS_read);
  thread.registers()[REG_RCX] = 7;
  EXPECT_FALSE(thread.is_ended());
  EXPECT_TRUE(thread.is_as_it_was(SYS_read));
}

TEST(InterruptedCall, GoesOnIfASignalDoesNotEndIt) {
  Thread thread(SYS_clone);
  EXPECT_FALSE(thread.is_ended());
  EXPECT_TRUE(thread.is_as_it_was(SYS_clone));
}

TEST(InterruptedCall, OfFutexesOnlyWaitsEnd) {
  constexpr greg_t kPrivate = 128, kRealtime = 256, kWaitBitset = 9, kLockPi = 6;
  for (const auto& [operation, ends] :
       {std::pair{kPrivate, true}, {kPrivate + kRealtime + kWaitBitset, true}, {kPrivate + kLockPi, false}}) {
    Thread thread(SYS_futex);
    thread.registers()[REG_RSI] = operation;
    EXPECT_EQ(thread.is_ended(), ends) << operation;
  }
}

TEST(InterruptedCall, WhoIsInOtherCodeIsLeftAlone) {
  Thread thread(SYS_read);
  thread.code = {0x90, 0x90};
  EXPECT_FALSE(thread.is_ended());
}

#endif

}  // namespace
}  // namespace plimsoll::capture
