#include "capture/call_numbers.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <functional>

#include "memory/local.h"
#include "os/os.h"

namespace plimsoll::capture {
namespace {

#if defined(__x86_64__)

// Where a thread goes on: behind the code that is given.
struct Thread {
  std::array<std::uint8_t, 10> code{0x90, 0x90, 0x90, 0xb8, 0,
                                    0,    0,    0,    0x0f, 0x05};  // nop...; mov number, %eax; syscall
  std::array<std::uint64_t, 4> stack{1, 2, 232, 4};
  ucontext_t context{};

  Thread() {
    context.uc_mcontext.gregs[REG_RIP] =
        static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(code.data() + code.size()));
    context.uc_mcontext.gregs[REG_RSP] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(stack.data()));
  }
  [[nodiscard]] std::int64_t number() const { return number_of_ended_call(context); }
};

TEST(CallNumbers, AreInTheCode) {
  Thread thread;
  const std::uint32_t number = SYS_epoll_pwait2;
  std::memcpy(thread.code.data() + 4, &number, sizeof number);
  EXPECT_EQ(thread.number(), SYS_epoll_pwait2);
}

TEST(CallNumbers, AreWhereTheCodeLoadsThemFrom) {
  Thread thread;
  thread.code = {0x90, 0x90, 0x90, 0x48, 0x8b, 0x44, 0x24, 0x10, 0x0f, 0x05};  // nop...; mov 16(%rsp), %rax; syscall
  EXPECT_EQ(thread.number(), 232);
}

TEST(CallNumbers, AreNotKnownOfOtherCode) {
  Thread other_register;
  other_register.code[2] = 0x41;  // to R8D
  EXPECT_EQ(other_register.number(), -1);
  Thread other;
  other.code[3] = 0x90;
  EXPECT_EQ(other.number(), -1);
  ASSERT_TRUE(memory::FaultGuard::ensure_installed().ok());
  Thread nowhere;
  nowhere.context.uc_mcontext.gregs[REG_RIP] = 2;
  EXPECT_EQ(nowhere.number(), -1);
}

// ---- of this C library ----

std::atomic<std::int64_t> told{0};

void tell(int /*signal*/, siginfo_t* /*info*/, void* context) {
  const auto& ended = *static_cast<const ucontext_t*>(context);
  if (ended.uc_mcontext.gregs[REG_RAX] == -EINTR) told.store(number_of_ended_call(ended));
}

class CallNumbersOfTheLibrary : public ::testing::Test {
 protected:
  void SetUp() override {
    struct sigaction action {};
    action.sa_sigaction = tell;
    action.sa_flags = SA_SIGINFO;
    ASSERT_EQ(::sigaction(signal_, &action, nullptr), 0);
  }
  void TearDown() override { ::signal(signal_, SIG_DFL); }
  // What is told of the call when a signal ends it.
  std::int64_t number_of(const std::function<int()>& call) const {
    constexpr std::int64_t kOften = 1'000'000;
    told.store(0);
    const auto tick =
        os::ThreadTick::create(os::TickClock::kMonotonic, {os::current_tid(), signal_, 0, kOften, kOften}).take();
    EXPECT_TRUE(tick.restart(kOften, kOften));
    while (told.load() == 0) call();
    return told.load();
  }

  const int signal_ = os::unused_realtime_signal().take();
};

TEST_F(CallNumbersOfTheLibrary, AreKnownOnceTheyAreLearned) {
  learn_call_numbers(signal_);
  EXPECT_EQ(number_of([] { return ::poll(nullptr, 0, -1); }), SYS_poll);
  const timespec long_time{1000, 0};
  EXPECT_EQ(number_of([&] { return ::clock_nanosleep(CLOCK_MONOTONIC, 0, &long_time, nullptr); }), SYS_clock_nanosleep);
  const int queue = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{};
  EXPECT_EQ(number_of([&] { return ::epoll_wait(queue, &event, 1, -1); }), SYS_epoll_wait);
  ::close(queue);
}

#endif

}  // namespace
}  // namespace plimsoll::capture
