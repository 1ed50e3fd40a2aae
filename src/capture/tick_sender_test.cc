// capture/tick_sender_test.cc: who is sent ticks, and who is left alone.
#include "capture/tick_sender.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <thread>

#include "capture/reader_thread.h"
#include "capture/sampler_testing.h"

namespace plimsoll::capture {
namespace {

using testing::burn;
using testing::burn_until;
using testing::kMillisecond;
using testing::run_registered;
using testing::Sampling;

constexpr TickSettings kSettings{.rate_hz = 1000, .clock = os::TickClock::kDirected, .max_depth = 64};

// A sampler, and looks at its threads by the test itself.
class TickSenderTest : public ::testing::Test {
 protected:
  // True if one has run since the last look.
  bool look() {
    bool has_run = false;
    sender_.begin_round();
    sampling->for_each_thread([&](ThreadSlot& slot) { has_run = sender_.look_at(slot) || has_run; },
                              [&] { sender_.end_round(); });
    return has_run;
  }
  std::uint32_t ticks() {
    std::uint32_t sum = 0;
    sampling->for_each_thread([&](const ThreadSlot& slot) { sum += slot.ticks.load(); });
    return sum;
  }

  Sampling sampling{kSettings};

 private:
  TickSender sender_;
};

TEST_F(TickSenderTest, AThreadThatRunsIsSampled) {
  // GIVEN a thread that runs WHEN it is looked at THEN it is sampled, and its time is told of
  sampling->start({os::current_tid()});
  std::atomic<bool> is_enough{false};
  std::thread thread(
      [&] { run_registered(sampling, "thread", [&] { burn_until([&] { return is_enough.load(); }); }); });
  while (sampling.samples_of("thread").size() < 20) look();
  is_enough = true;
  thread.join();
  sampling->stop();
  sampling.expect_all_accounted_for();
}

TEST_F(TickSenderTest, AThreadThatWaitsIsLeftAlone) {
  // GIVEN a thread that has run, and waits now
  sampling->start({os::current_tid()});
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  std::atomic<std::int32_t> tid{0};
  int polled = 0;
  std::thread thread([&] {
    sampling->thread_started("thread");
    burn(5 * kMillisecond);
    tid = static_cast<std::int32_t>(os::current_tid());
    pollfd input{ends[0], POLLIN, 0};
    polled = ::poll(&input, 1, -1);  // which no signal lets begin anew
    sampling->thread_ending("thread");
  });
  while (tid == 0) std::this_thread::yield();
  const os::ThreadProbe probe(Tid{tid.load()}, os::ThreadProbe::Keep::kClosed);
  while (probe.wait().kind == os::KernelWait::Kind::kRunnable) std::this_thread::yield();
  // WHEN it is looked at, first as one that has run since the last look
  EXPECT_TRUE(look());
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(look());
  // THEN it has had no tick, and its wait was not ended
  EXPECT_EQ(ticks(), 0U);
  EXPECT_EQ(::write(ends[1], "x", 1), 1);
  thread.join();
  EXPECT_EQ(polled, 1);
  for (const int end : ends) ::close(end);
}

TEST_F(TickSenderTest, AThreadThatWaitedForLongIsFoundAgain) {
  // GIVEN a thread that was found still so often that it is asked seldom
  sampling->start({os::current_tid()});
  std::atomic<bool> is_to_run{false}, is_enough{false};
  std::thread thread([&] {
    run_registered(sampling, "thread", [&] {
      is_to_run.wait(false);
      burn_until([&] { return is_enough.load(); });
    });
  });
  for (int i = 0; i < 1000; ++i) look();
  // WHEN it runs THEN it is sampled again
  is_to_run = true;
  is_to_run.notify_all();
  while (sampling.samples_of("thread").size() < 5) look();
  is_enough = true;
  thread.join();
}

TEST_F(TickSenderTest, AThreadThatBlocksTheSignalHasNoQueueOfThem) {
  // GIVEN a thread that blocks all signals and runs, without a word to the sampler
  sampling->start({os::current_tid()});
  std::atomic<bool> is_enough{false};
  int pending = 0;
  std::int64_t used_ns = 0;
  std::thread thread([&] {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
    sampling->thread_started("thread");
    const std::int64_t before = thread_cpu_ns();
    burn_until([&] { return is_enough.load(); });
    const timespec at_once{};
    while (::sigtimedwait(&all, nullptr, &at_once) > 0) ++pending;
    used_ns = thread_cpu_ns() - before;
    sampling->thread_ending("thread");
  });
  // WHEN it is looked at all the time for a hundred periods of its time
  std::int64_t cpu_ns = 0;
  while (cpu_ns < 100 * kMillisecond) {
    look();
    sampling->for_each_thread([&](const ThreadSlot& slot) { cpu_ns = slot.sending.last_look.cpu_ns; });
  }
  is_enough = true;
  thread.join();
  // THEN no more than some few wait for it
  EXPECT_GE(pending, 1);
  EXPECT_LE(pending, 2 + used_ns / (32 * kMillisecond));
}

TEST(SentTick, IsGoneWhenTheProgramBecomesAnother) {
  // GIVEN a process whose thread has a tick pending
  const pid_t pid = ::fork();
  if (pid == 0) {
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    os::ThreadTick tick =
        os::ThreadTick::create(os::TickClock::kDirected, {.tid = os::current_tid(), .signal = SIGRTMAX, .slot = 7})
            .take();
    sigset_t pending;
    const bool is_pending = tick.send() && ::sigpending(&pending) == 0 && ::sigismember(&pending, SIGRTMAX) == 1;
    // WHEN it becomes another program, which such a signal would end
    if (is_pending) ::execl("/bin/grep", "grep", "-q", "^SigPnd:[[:space:]]*0*$", "/proc/thread-self/status", nullptr);
    ::_exit(9);
  }
  // THEN that has none
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(TickSenderTest, NobodyIsSampledInAPause) {
  // GIVEN a pause
  sampling->start({os::current_tid()});
  const std::unique_ptr<ReaderThread> reader =
      ReaderThread::start({.ticks = true}, Sampling::interpreter(), *sampling.operator->(), sampling.ring(),
                          sampling.seen(), 64)
          .take();
  run_registered(sampling, "thread", [&] {
    sampling->pause();
    const std::size_t before = sampling.samples().size();
    burn(20 * kMillisecond);
    EXPECT_EQ(sampling.samples().size(), before);
    // WHEN it ends THEN there are samples again
    sampling->resume();
    reader->go_on();
    burn_until([&] { return sampling.samples().size() > before; });
  });
  reader->stop();
  sampling->stop();
}

}  // namespace
}  // namespace plimsoll::capture
