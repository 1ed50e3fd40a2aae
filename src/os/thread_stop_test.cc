// os/thread_stop_test.cc: threads of a child process, stopped and let go.
#include "os/thread_stop.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/clock.h"
#include "os/os.h"

namespace plimsoll::os {
namespace {

// What the child and the test both see.
struct Shared {
  std::atomic<std::uint64_t> rounds{0};
  std::atomic<std::uint64_t> interrupted{0};
};

// A child process that runs a function, and is killed at the end.
class Child {
 public:
  template <typename Body>
  explicit Child(Body body) {
    void* room = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared_ = new (room) Shared;
    pid_ = ::fork();
    if (pid_ == 0) {
      body(*shared_);
      ::_exit(0);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::munmap(shared_, sizeof(Shared));
  }

  [[nodiscard]] Pid pid() const { return Pid{pid_}; }
  [[nodiscard]] Tid tid() const { return Tid{pid_}; }
  [[nodiscard]] Shared& shared() const { return *shared_; }
  // Returns when it has begun its first round.
  void await_begin() const {
    while (shared_->rounds == 0) ::sched_yield();
  }
  // Returns when it has gone round so often more.
  void await_rounds(std::uint64_t more) const {
    const std::uint64_t end = shared_->rounds + more;
    while (shared_->rounds < end) ::sched_yield();
  }
  [[nodiscard]] char state() const { return tasks_of(pid()).at(0).state; }

 private:
  Shared* shared_ = nullptr;
  pid_t pid_ = -1;
};

void count_rounds(Shared& shared) {
  while (true) ++shared.rounds;
}

class ThreadStop : public ::testing::Test {
 protected:
  void SetUp() override {
#if !defined(__x86_64__)
    GTEST_SKIP() << "threads are stopped on x86-64 only";
#endif
  }
};

TEST_F(ThreadStop, HoldsAThreadAndTellsItsRegisters) {
  const Child child(count_rounds);
  child.await_rounds(1000);
  ThreadStopper stopper;
  if (stopper.stop(child.pid(), child.tid()) == StopOutcome::kRefused) GTEST_SKIP() << "ptrace is not allowed here";
  // WHEN it is stopped THEN it does nothing, and its registers point into its program and its stack
  const std::uint64_t before = child.shared().rounds;
  const std::optional<ThreadRegisters> registers = stopper.registers();
  ASSERT_TRUE(registers.has_value());
  EXPECT_EQ(child.state(), 't');
  const Result<std::vector<Mapping>> mappings = mappings_of(child.pid());
  ASSERT_TRUE(mappings.ok());
  const auto is_in = [&](std::uint64_t at, auto matches) {
    return std::any_of(mappings.value().begin(), mappings.value().end(),
                       [&](const Mapping& each) { return each.start <= at && at < each.end && matches(each); });
  };
  constexpr std::size_t kStackPointer = 7;
  EXPECT_TRUE(is_in(registers->pc, [](const Mapping& each) { return each.is_executable; }));
  EXPECT_TRUE(is_in(registers->value[kStackPointer], [](const Mapping& each) { return each.path == "[stack]"; }));
  EXPECT_EQ(child.shared().rounds, before);
  // AND when it is let go it goes on
  stopper.let_go();
  child.await_rounds(1000);
  EXPECT_GT(stopper.held_ns(), 0);
  EXPECT_EQ(stopper.longest_held_ns(), stopper.held_ns());
  EXPECT_NEAR(static_cast<double>(stopper.median_held_ns()) / static_cast<double>(stopper.held_ns()), 1, 0.1);
}

TEST_F(ThreadStop, WhoHoldsAThreadIsNotStoppedByATerminal) {
  // GIVEN a thread that is held, which would stand still for as long as we do
  const auto is_blocked = [](int signal) {
    sigset_t now;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
    return ::sigismember(&now, signal) == 1;
  };
  const Child child(count_rounds);
  child.await_begin();
  ThreadStopper stopper;
  ASSERT_EQ(stopper.stop(child.pid(), child.tid()), StopOutcome::kStopped);
  // THEN Ctrl-Z and the like wait until it goes on
  for (const int signal : {SIGTSTP, SIGTTIN, SIGTTOU}) EXPECT_TRUE(is_blocked(signal)) << signal;
  stopper.let_go();
  for (const int signal : {SIGTSTP, SIGTTIN, SIGTTOU}) EXPECT_FALSE(is_blocked(signal)) << signal;
}

TEST_F(ThreadStop, EndsWithItsOwner) {
  const Child child(count_rounds);
  {
    ThreadStopper stopper;
    if (stopper.stop(child.pid(), child.tid()) == StopOutcome::kRefused) GTEST_SKIP() << "ptrace is not allowed here";
  }
  child.await_rounds(1000);
}

TEST_F(ThreadStop, IsNoErrorIfTheThreadHasEnded) {
  const Child child([](Shared&) { ::_exit(0); });
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT), 0);
  ThreadStopper stopper;
  EXPECT_NE(stopper.stop(child.pid(), child.tid()), StopOutcome::kStopped);
  EXPECT_FALSE(stopper.registers().has_value());
  EXPECT_EQ(stopper.stop(child.pid(), Tid{0x3fffffff}), StopOutcome::kEnded);
  EXPECT_EQ(stopper.median_held_ns(), 0);
}

TEST_F(ThreadStop, LeavesAStoppedProcessStopped) {
  // GIVEN a process that somebody has stopped
  const Child child(count_rounds);
  ::kill(static_cast<pid_t>(child.pid()), SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(static_cast<pid_t>(child.pid()), &status, WUNTRACED), static_cast<pid_t>(child.pid()));
  const std::uint64_t before = child.shared().rounds;
  ThreadStopper stopper;
  if (stopper.stop(child.pid(), child.tid()) == StopOutcome::kRefused) GTEST_SKIP() << "ptrace is not allowed here";
  EXPECT_TRUE(stopper.registers().has_value());
  stopper.let_go();
  // THEN it is stopped afterwards, has not run, and goes on when it is told to
  while (child.state() != 'T') ::sched_yield();  // it goes from one stop to the other by itself
  EXPECT_EQ(child.shared().rounds, before);
  ::kill(static_cast<pid_t>(child.pid()), SIGCONT);
  child.await_rounds(1000);
}

TEST_F(ThreadStop, HandsSignalsOn) {
  // GIVEN a thread that counts signals, and one that comes whenever it is stopped
  static std::atomic<std::uint64_t>* count = nullptr;
  const Child child([](Shared& shared) {
    count = &shared.interrupted;
    struct sigaction action {};
    action.sa_handler = [](int) { ++*count; };
    ::sigaction(SIGUSR1, &action, nullptr);
    count_rounds(shared);
  });
  child.await_rounds(1000);
  ThreadStopper stopper;
  constexpr std::uint64_t kTimes = 200;
  for (std::uint64_t i = 0; i < kTimes; ++i) {
    ::kill(static_cast<pid_t>(child.pid()), SIGUSR1);
    if (stopper.stop(child.pid(), child.tid()) == StopOutcome::kRefused) GTEST_SKIP() << "ptrace is not allowed here";
    stopper.let_go();
    // THEN none is lost
    while (child.shared().interrupted <= i) ::sched_yield();
  }
  EXPECT_EQ(child.shared().interrupted, kTimes);
}

TEST_F(ThreadStop, LetsNoCallSeeThatItWasInterrupted) {
  // GIVEN a thread that goes into a wait and out of it all the time, and counts what the kernel says of it
  const Child child([](Shared& shared) {
    const int poll = ::epoll_create1(0);
    while (true) {
      epoll_event event{};
      if (::epoll_wait(poll, &event, 1, 1) < 0 && errno == EINTR) ++shared.interrupted;
      ++shared.rounds;
    }
  });
  child.await_rounds(10);
  // WHEN it is stopped wherever it is, in the wait, too
  ThreadStopper stopper;
  for (int i = 0; i < 200; ++i) {
    if (stopper.stop(child.pid(), child.tid()) == StopOutcome::kRefused) GTEST_SKIP() << "ptrace is not allowed here";
    stopper.let_go();
    child.await_rounds(1);
  }
  // THEN it has not noticed
  EXPECT_EQ(child.shared().interrupted, 0U);
}

// Waits that begin again as if nothing had been.
class ThreadStopInWait : public ::testing::TestWithParam<void (*)()> {};

TEST_P(ThreadStopInWait, IsNotNoticed) {
  // GIVEN a thread that waits for ever
  static void (*wait)() = nullptr;
  wait = GetParam();
  const Child child([](Shared& shared) {
    ++shared.rounds;
    wait();
    ++shared.interrupted;
  });
  child.await_begin();
  const ThreadProbe probe(child.tid(), ThreadProbe::Keep::kClosed, static_cast<std::int32_t>(child.pid()));
  const auto is_waiting = [&] { return child.state() == 'S' && probe.wait().is_resumable; };
  while (!is_waiting()) ::sched_yield();
  const Address instruction = probe.wait().instruction;
  ThreadStopper stopper;
  for (int i = 0; i < 20; ++i) {
    // WHEN it is stopped and let go
    if (stopper.stop(child.pid(), child.tid()) == StopOutcome::kRefused) GTEST_SKIP() << "ptrace is not allowed here";
    stopper.let_go();
    while (!is_waiting()) ASSERT_EQ(child.shared().interrupted, 0U);
  }
  // THEN it waits still, at the same place
  EXPECT_EQ(probe.wait().instruction, instruction);
  EXPECT_EQ(child.shared().interrupted, 0U);
}

int pipe_of_nobody() {
  int ends[2];
  return ::pipe(ends) == 0 ? ends[0] : -1;
}

INSTANTIATE_TEST_SUITE_P(Calls, ThreadStopInWait,
                         ::testing::Values(
                             +[] {
                               char byte = 0;
                               (void)!::read(pipe_of_nobody(), &byte, 1);
                             },
                             +[] {
                               epoll_event event{};
                               (void)::epoll_wait(::epoll_create1(0), &event, 1, -1);
                             },
                             +[] {
                               const timespec century{4'000'000'000, 0};
                               (void)::clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &century, nullptr);
                             },
                             +[] { (void)::syscall(SYS_pause); },
                             +[] {
                               int word = 0;
                               (void)::syscall(SYS_futex, &word, 128, 0, nullptr, nullptr,
                                               0);  // FUTEX_WAIT | FUTEX_PRIVATE_FLAG
                             },
                             +[] {
                               const pid_t child = ::getpid();
                               const pid_t grandchild = ::fork();
                               if (grandchild == 0) {
                                 ::prctl(PR_SET_PDEATHSIG, SIGKILL);
                                 if (::getppid() != child) ::_exit(0);  // killed before that: nobody tells us
                                 (void)::syscall(SYS_pause);
                               }
                               (void)::waitpid(grandchild, nullptr, 0);
                             },
                             +[] {
                               fd_set set;
                               FD_ZERO(&set);
                               const int end = pipe_of_nobody();
                               FD_SET(end, &set);
                               timespec day{86'400, 0};
                               (void)::pselect(end + 1, &set, nullptr, nullptr, &day, nullptr);
                             }));

TEST_F(ThreadStop, LetsASignalEndACallThatItWouldHaveEnded) {
  // GIVEN a thread that waits for ever
  const Child child([](Shared& shared) {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    ::sigaction(SIGUSR1, &action, nullptr);
    const int poll = ::epoll_create1(0);
    epoll_event event{};
    ++shared.rounds;
    if (::epoll_wait(poll, &event, 1, -1) < 0 && errno == EINTR) ++shared.interrupted;
    count_rounds(shared);
  });
  child.await_begin();
  const ThreadProbe probe(child.tid(), ThreadProbe::Keep::kClosed, static_cast<std::int32_t>(child.pid()));
  while (!probe.wait().is_resumable) ::sched_yield();
  // WHEN a signal comes while it is stopped
  ThreadStopper stopper;
  if (stopper.stop(child.pid(), child.tid()) == StopOutcome::kRefused) GTEST_SKIP() << "ptrace is not allowed here";
  ::kill(static_cast<pid_t>(child.pid()), SIGUSR1);
  stopper.let_go();
  // THEN the wait ends, as it would have without us
  child.await_rounds(1);
  EXPECT_EQ(child.shared().interrupted, 1U);
}

}  // namespace
}  // namespace plimsoll::os
