#include "capture/interrupted_call.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <tuple>
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

// Where a thread goes on behind a system call that has ended with EINTR, which the instruction before has given its
// number.
struct EndedThread {
  std::array<std::uint8_t, 8> code{0x90, 0xb8, 0, 0, 0, 0, 0x0f, 0x05};  // nop; mov eax, number; syscall
  ucontext_t context{};

  explicit EndedThread(greg_t number) {
    const auto written = static_cast<std::uint32_t>(number);
    std::memcpy(code.data() + 2, &written, sizeof written);
    registers()[REG_RIP] = registers()[REG_RCX] = end();
    registers()[REG_RAX] = -EINTR;
  }
  gregset_t& registers() { return context.uc_mcontext.gregs; }
  [[nodiscard]] greg_t end() const {
    return static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(code.data() + code.size()));
  }
  // The number of the call that is begun anew; 0 if the thread is left as it is.
  greg_t begun_anew() {
    const greg_t before = registers()[REG_RAX];
    begin_call_anew(context, SIGRTMAX);
    if (registers()[REG_RIP] == end() && registers()[REG_RAX] == before) return 0;
    EXPECT_EQ(registers()[REG_RIP], end() - kCallBytes);
    return registers()[REG_RAX];
  }
};

TEST(EndedCall, BeginsAnewIfItHasDoneNothing) {
  for (const greg_t number : {SYS_poll, SYS_epoll_wait, SYS_clock_nanosleep, SYS_recvfrom})
    EXPECT_EQ(EndedThread(number).begun_anew(), number);
}

TEST(EndedCall, StaysEndedIfItIsNotKnownToHaveDoneNothing) {
  for (const greg_t number : {SYS_connect, SYS_close, SYS_rt_sigsuspend})
    EXPECT_EQ(EndedThread(number).begun_anew(), 0) << number;
}

TEST(EndedCall, StaysEndedIfASignalMaskMayHaveLetASignalIn) {
  EndedThread thread(SYS_ppoll);
  thread.registers()[REG_R10] = 7;
  EXPECT_EQ(thread.begun_anew(), 0);
  EXPECT_EQ(EndedThread(SYS_ppoll).begun_anew(), SYS_ppoll);
}

TEST(EndedCall, OfSelectMayHaveAPlaceForAMaskThatIsNotThere) {
  std::array<std::uint64_t, 2> place{0, 8};  // the address of the mask, and its bytes
  EndedThread thread(SYS_pselect6);
  thread.registers()[REG_R9] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(place.data()));
  EXPECT_EQ(thread.begun_anew(), SYS_pselect6);
  place[0] = 7;
  EndedThread with_mask(SYS_pselect6);
  with_mask.registers()[REG_R9] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(place.data()));
  EXPECT_EQ(with_mask.begun_anew(), 0);
}

TEST(EndedCall, OfASleepGoesOnWithWhatIsLeft) {
  for (const auto& [number, wanted, left, is_instant] : {std::tuple{SYS_nanosleep, REG_RDI, REG_RSI, false},
                                                         {SYS_clock_nanosleep, REG_RDX, REG_R10, false},
                                                         {SYS_clock_nanosleep, REG_RDX, REG_R10, true}}) {
    EndedThread thread(number);
    thread.registers()[wanted] = 100;
    thread.registers()[left] = 200;
    if (number == SYS_clock_nanosleep) thread.registers()[REG_RSI] = is_instant ? TIMER_ABSTIME : 0;
    EXPECT_EQ(thread.begun_anew(), number);
    EXPECT_EQ(thread.registers()[wanted], is_instant ? 100 : 200);
  }
}

TEST(EndedCall, StaysAsItIsIfItHasAnotherResult) {
  EndedThread thread(SYS_poll);
  thread.registers()[REG_RAX] = 1;
  EXPECT_EQ(thread.begun_anew(), 0);
}

TEST(EndedCall, IsNotTakenForOneWhereTheThreadIsInOtherCode) {
  EndedThread elsewhere(SYS_poll);
  elsewhere.code[7] = 0x34;
  EXPECT_EQ(elsewhere.begun_anew(), 0);
  EndedThread not_returned(SYS_poll);
  not_returned.registers()[REG_RCX] = 7;
  EXPECT_EQ(not_returned.begun_anew(), 0);
}

TEST(EndedCall, IsNotGuessedFromWhatIsMovedToAnotherRegister) {
  EndedThread thread(SYS_poll);
  thread.code[0] = 0x41;  // to R8D
  EXPECT_EQ(thread.begun_anew(), 0);
}

// A signal waits for the calling thread, as for one in a tick's handler, for the scope.
class Pending {
 public:
  explicit Pending(int signal) {
    ::sigemptyset(&only_);
    ::sigaddset(&only_, signal);
    ::pthread_sigmask(SIG_BLOCK, &only_, &before_);
    ::pthread_kill(::pthread_self(), signal);
  }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  ~Pending() {
    int taken = 0;
    ::sigwait(&only_, &taken);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t only_{}, before_{};
};

TEST(PendingSignal, EndsACallThatATickHasBegunAnew) {
  Thread thread(SYS_read);
  end_call_for_pending(thread.context, SIGRTMAX);
  EXPECT_TRUE(thread.is_as_it_was(SYS_read)) << "there is none";
  const Pending pending(SIGUSR1);
  end_call_for_pending(thread.context, SIGRTMAX);
  EXPECT_EQ(thread.registers()[REG_RIP], thread.start() + kCallBytes);
  EXPECT_EQ(thread.registers()[REG_RAX], -EINTR);
}

TEST(PendingSignal, IsNoReasonToEndACallOfAThreadThatBlocksIt) {
  const Pending pending(SIGUSR1);
  Thread thread(SYS_read);
  ::sigaddset(&thread.context.uc_sigmask, SIGUSR1);
  end_call_for_pending(thread.context, SIGRTMAX);
  EXPECT_TRUE(thread.is_as_it_was(SYS_read));
}

TEST(PendingSignal, OfTheTickItselfEndsNothing) {
  const Pending pending(SIGUSR1);
  Thread thread(SYS_read);
  end_call_for_pending(thread.context, SIGUSR1);
  EXPECT_TRUE(thread.is_as_it_was(SYS_read));
}

TEST(PendingSignal, KeepsACallFromBeginningAnew) {
  const Pending pending(SIGUSR1);
  EXPECT_EQ(EndedThread(SYS_poll).begun_anew(), 0);
}

#endif

}  // namespace
}  // namespace plimsoll::capture
