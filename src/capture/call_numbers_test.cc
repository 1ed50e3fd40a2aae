#include "capture/call_numbers.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <functional>
#include <initializer_list>

#include "memory/local.h"
#include "os/os.h"

namespace plimsoll::capture {
namespace {

#if defined(__x86_64__)

// Where a thread goes on: behind this code and a system call.
struct Thread {
  std::array<std::uint8_t, 32> code{};
  std::array<std::uint64_t, 4> stack{1, 2, SYS_epoll_wait, 4};
  ucontext_t context{};

  explicit Thread(std::initializer_list<std::uint8_t> before_call) {
    constexpr std::array<std::uint8_t, 2> kSystemCall{0x0f, 0x05};
    code.fill(0x90);  // nop
    const auto call = std::copy_backward(kSystemCall.begin(), kSystemCall.end(), code.end());
    std::copy_backward(before_call.begin(), before_call.end(), call);
    const std::uint8_t* const end = code.data() + code.size();
    context.uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(end));
    context.uc_mcontext.gregs[REG_RSP] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(stack.data()));
  }
  [[nodiscard]] std::int64_t number() const { return number_of_ended_call(context); }
};

TEST(CallNumbers, AreInTheCode) {
  EXPECT_EQ(Thread({0xb8, 0x0e, 0x01, 0x00, 0x00}).number(), SYS_pselect6);  // mov 0x10e, %eax
  EXPECT_EQ(Thread({0x31, 0xc0}).number(), SYS_read);                        // xor %eax, %eax
}

TEST(CallNumbers, AreInTheCodeBeforeAnArgument) {
  EXPECT_EQ(Thread({0xb8, 0x0e, 0x01, 0x00, 0x00, 0x8b, 0x7c, 0x24, 0x1c}).number(), SYS_pselect6);        // to EDI
  EXPECT_EQ(Thread({0xb8, 0x0e, 0x01, 0x00, 0x00, 0x48, 0x8b, 0x74, 0x24, 0x20}).number(), SYS_pselect6);  // to RSI
}

TEST(CallNumbers, AreWhereTheCodeLoadsThemFrom) {
  EXPECT_EQ(Thread({0x48, 0x8b, 0x44, 0x24, 0x10}).number(), SYS_epoll_wait);  // mov 16(%rsp), %rax
}

TEST(CallNumbers, AreNotKnownOfOtherCode) {
  ASSERT_TRUE(memory::FaultGuard::ensure_installed().ok());
  EXPECT_EQ(Thread({0x41, 0xb8, 0x0e, 0x01, 0x00, 0x00}).number(), -1);                          // to R8D
  EXPECT_EQ(Thread({0xb8, 0x0e, 0x01, 0x00, 0x00, 0x8b, 0x44, 0x24, 0x1c}).number(), -1);        // then to EAX, too
  EXPECT_EQ(Thread({0xb8, 0x0e, 0x01, 0x00, 0x00, 0x8b, 0x7c, 0x24, 0x1c, 0x90}).number(), -1);  // then something else
  EXPECT_EQ(Thread({}).number(), -1);
  Thread nowhere({});
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
  EXPECT_EQ(number_of([&] { return ::pselect(0, nullptr, nullptr, nullptr, &long_time, nullptr); }), SYS_pselect6);
  ::close(queue);
}

#endif

}  // namespace
}  // namespace plimsoll::capture
