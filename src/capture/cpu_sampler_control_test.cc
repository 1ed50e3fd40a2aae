// capture/cpu_sampler_control_test.cc: pausing, the rate, threads that come, go and block signals, and the end.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <optional>
#include <set>

#include "capture/cpu_sampler.h"
#include "capture/sampler_testing.h"
#include "capture/tick_signals.h"

namespace plimsoll::capture {
namespace {

using testing::burn;
using testing::burn_until;
using testing::kMillisecond;
using testing::run_registered;
using testing::Sampling;

class CpuSamplerControl : public testing::WithEachClock {};

// All signals are blocked on the calling thread for the scope.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

// A limit of the process is none or next to nothing for the scope.
class Limited {
 public:
  Limited(decltype(RLIMIT_NOFILE) resource, rlim_t limit) : resource_(resource) {
    ::getrlimit(resource_, &before_);
    const rlimit now{limit, before_.rlim_max};
    ::setrlimit(resource_, &now);
  }
  Limited(const Limited&) = delete;
  Limited& operator=(const Limited&) = delete;
  ~Limited() { ::setrlimit(resource_, &before_); }

 private:
  const decltype(RLIMIT_NOFILE) resource_;
  rlimit before_{};
};

// SIGTRAP is the program's for the scope.
class TrapsTaken {
 public:
  TrapsTaken() {
    struct sigaction ours {};
    ours.sa_handler = [](int) {};
    ::sigaction(SIGTRAP, &ours, &before_);
  }
  TrapsTaken(const TrapsTaken&) = delete;
  TrapsTaken& operator=(const TrapsTaken&) = delete;
  ~TrapsTaken() { ::sigaction(SIGTRAP, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

// A thread that uses CPU time until told to end. Not registered.
class BusyThread {
 public:
  explicit BusyThread(bool blocks_signals = false)
      : thread_([this, blocks_signals] {
          std::optional<SignalsBlocked> blocked;
          if (blocks_signals) blocked.emplace();
          tid_ = static_cast<std::int32_t>(os::current_tid());
          while (!is_ending_) {
            burn(kMillisecond / 10);
            if (wants_signals_) blocked.reset();
          }
        }) {
    while (tid_ == 0) std::this_thread::yield();
  }
  BusyThread(const BusyThread&) = delete;
  BusyThread& operator=(const BusyThread&) = delete;
  ~BusyThread() {
    if (thread_.joinable()) end();
  }

  [[nodiscard]] Tid tid() const { return Tid{tid_.load()}; }
  [[nodiscard]] std::int64_t cpu_ns() const { return os::thread_cpu_ns(tid()); }
  // Returns when the thread has used that much more CPU time.
  void wait_for_cpu(std::int64_t more_ns) const {
    const std::int64_t end = cpu_ns() + more_ns;
    while (cpu_ns() < end) std::this_thread::yield();
  }
  void unblock_signals() { wants_signals_ = true; }
  void end() {
    is_ending_ = true;
    thread_.join();
  }

 private:
  std::atomic<std::int32_t> tid_{0};
  std::atomic<bool> is_ending_{false};
  std::atomic<bool> wants_signals_{false};
  std::thread thread_;
};

// The signal of our ticks: the real-time signal that has a handler.
int tick_signal() {
  for (int signal = SIGRTMAX; signal >= SIGRTMIN; --signal) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) != 0) return signal;
  }
  return 0;
}

// ---- pausing ----

TEST_P(CpuSamplerControl, FindingOutWhatATickCostsIsNoSampleAndNoLoss) {
  // GIVEN a recording that has not needed to know
  Sampling sampling(at(1000));
  sampling->start({});
  // WHEN another thread raises the rate until it does
  std::thread([&] { EXPECT_TRUE(sampling->set_rate(20'000).ok()); }).join();
  sampling->stop();
  EXPECT_EQ(sampling.dropped(DropReason::kForeignSignal).count, 0U);
}

TEST_P(CpuSamplerControl, TimeInAPauseIsNeitherSampledNorDropped) {
  Sampling sampling(at(1000));
  const std::int64_t before = thread_cpu_ns();
  sampling->start({os::current_tid()});
  std::int64_t outside = 0;
  std::int64_t inside = 0;
  const auto burn_some = [](std::int64_t& counted) {
    const std::int64_t at_start = thread_cpu_ns();
    burn(30 * kMillisecond);
    counted += thread_cpu_ns() - at_start;
  };
  const testing::ThreadUsed worker = run_registered(sampling, "worker", [&] {
    burn_some(outside);
    // GIVEN a pause within a pause
    sampling->pause();
    sampling->pause();
    EXPECT_TRUE(sampling->is_paused());
    const std::size_t samples = sampling.samples().size();
    burn_some(inside);
    // WHEN the inner one ends THEN it is still a pause
    sampling->resume();
    EXPECT_TRUE(sampling->is_paused());
    burn_some(inside);
    EXPECT_EQ(sampling.samples().size(), samples);
    // AND samples come again when the outer one ends
    sampling->resume();
    EXPECT_FALSE(sampling->is_paused());
    do burn_some(outside);
    while (sampling.samples().size() == samples);
  });
  sampling->stop();
  sampling.expect_told_of_between(outside, worker.most_ns - inside + thread_cpu_ns() - before);
  EXPECT_GE(sampling->paused_cpu_ns(), inside);
}

TEST_P(CpuSamplerControl, ManyPausesAddNoTime) {
  // GIVEN a thread that is recorded for three periods at a time
  constexpr int kPauses = 400;
  Sampling sampling(at(1000));
  sampling->start({os::current_tid()});
  sampling->pause();
  std::int64_t outside = 0;
  run_registered(sampling, "worker", [&] {
    for (int i = 0; i < kPauses; ++i) {
      const std::int64_t at_start = thread_cpu_ns();
      sampling->resume();
      burn(3 * sampling.period_ns());
      sampling->pause();
      outside += thread_cpu_ns() - at_start;
      (void)sampling.samples();  // (the ring is small)
    }
  });
  sampling->stop();
  // THEN what is told too much before one pause is taken off behind another
  constexpr std::int64_t kFewPeriods = 7;
  EXPECT_LE(sampling.sampled_cpu_ns() + sampling.dropped_cpu_ns(), outside + kFewPeriods * sampling.period_ns());
}

TEST_P(CpuSamplerControl, AResumeWithoutAPauseIsIgnored) {
  Sampling sampling(at(1000));
  sampling->start({os::current_tid()});
  sampling->resume();
  sampling->pause();
  EXPECT_TRUE(sampling->is_paused());
  sampling->resume();
  EXPECT_FALSE(sampling->is_paused());
}

TEST_P(CpuSamplerControl, AThreadThatStartsInAPauseIsSampledAfterIt) {
  Sampling sampling(at(1000));
  sampling->start({os::current_tid()});
  sampling->pause();
  std::int64_t inside = 0, outside = 0;
  const testing::ThreadUsed worker = run_registered(sampling, "worker", [&] {
    const std::int64_t at_start = thread_cpu_ns();
    burn(20 * kMillisecond);
    EXPECT_TRUE(sampling.samples().empty());
    inside = thread_cpu_ns() - at_start;
    sampling->resume();
    const std::int64_t resumed = thread_cpu_ns();
    burn_until([&] { return !sampling.samples().empty(); });
    outside = thread_cpu_ns() - resumed;
  });
  sampling->stop();
  // Nothing of the pause is in it.
  sampling.expect_told_of_between(outside, worker.most_ns - inside);
}

// ---- silence, before another program takes this one's place: a trap would kill it ----

TEST_P(CpuSamplerControl, NoTickComesToASilentThreadWhateverElseChanges) {
  Sampling sampling(at(1000));
  sampling->start({os::current_tid()});
  run_registered(sampling, "worker", [&] {
    burn_until([&] { return !sampling.samples().empty(); });
    // GIVEN a thread that is silent
    sampling->silence_caller();
    const std::size_t samples = sampling.samples().size();
    // WHEN others change the rate, or end a pause
    EXPECT_TRUE(sampling->set_rate(2000).ok());
    sampling->pause();
    sampling->resume();
    // THEN there is no tick
    burn(20 * kMillisecond);
    EXPECT_EQ(sampling.samples().size(), samples);
    // AND there are again when it ends
    sampling->end_silence_of_caller();
    burn_until([&] { return sampling.samples().size() > samples; });
  });
  sampling->stop();
}

TEST_P(CpuSamplerControl, ATickThatASilentThreadHasBlockedIsGone) {
  Sampling sampling(at(1000));
  sampling->start({os::current_tid()});
  run_registered(sampling, "worker", [&] {
    // GIVEN a thread that computes while it blocks all signals, of which others have sent one
    const SignalsBlocked blocked;
    ::pthread_kill(::pthread_self(), SIGUSR1);
    burn(20 * kMillisecond);
    // WHEN it is silent
    sampling->silence_caller();
    // THEN that one alone waits for it, however long that lasts
    burn(20 * kMillisecond);
    sampling->poll();
    burn(20 * kMillisecond);
    sigset_t pending;
    ::sigpending(&pending);
    for (int signal = 1; signal < SIGRTMAX; ++signal)
      EXPECT_EQ(::sigismember(&pending, signal), signal == SIGUSR1 ? 1 : 0) << signal;
    sigset_t sent;
    ::sigemptyset(&sent);
    ::sigaddset(&sent, SIGUSR1);
    int taken = 0;
    EXPECT_EQ(::sigwait(&sent, &taken), 0);
    sampling->end_silence_of_caller();
  });
  sampling->stop();
}

// ---- the rate ----

TEST_P(CpuSamplerControl, TheRateMayChangeWhileThreadsRun) {
  // GIVEN a thread that is sampled every 500 us
  Sampling sampling(at(2000));
  sampling->start({os::current_tid()});
  std::size_t fast = 0;
  run_registered(sampling, "worker", [&] {
    burn_until([&] { return sampling.samples().size() >= 10; });
    fast = sampling.samples().size();
    // WHEN it is to be every 20 ms
    EXPECT_TRUE(sampling->set_rate(50).ok());
    EXPECT_NEAR(sampling->rate_hz(), 50, 0.01);
    burn_until([&] { return sampling.samples().size() >= fast + 5; });
  });
  sampling->stop();
  // THEN it is, give or take what instants are spread by. The first may have been due already, and the last is of the
  // thread's end.
  EXPECT_GT(sampling.samples()[fast + 4].raw.time_ns - sampling.samples()[fast].raw.time_ns, 4 * 10 * kMillisecond);
  sampling.expect_all_accounted_for();
}

TEST_P(CpuSamplerControl, AnImpossibleRateIsRefusedAndChangesNothing) {
  Sampling sampling(at(1000));
  sampling->start({os::current_tid()});
  for (const double rate : {0.0, -5.0, 1e9, std::nan("")}) {
    const Status set = sampling->set_rate(rate);
    ASSERT_FALSE(set.ok());
    EXPECT_EQ(set.error().kind, ErrorKind::kUsage);
  }
  EXPECT_NEAR(sampling->rate_hz(), 1000, 0.01);
}

TEST_P(CpuSamplerControl, TicksComeNoFasterThanAProgramCanBear) {
  // GIVEN a rate that every machine bears WHEN it is set THEN it is that
  Sampling sampling(at(10'000));
  EXPECT_NEAR(sampling->rate_hz(), 10'000, 0.01);
  EXPECT_EQ(sampling->most_ticks_hz(), 0);
  // WHEN it is one at which ticks may take longer than what is between them
  EXPECT_TRUE(sampling->set_rate(100'000).ok());
  // THEN half of the time is left, and a rate as before is borne all the same
  const double period_ns = 1e9 / sampling->rate_hz();
  EXPECT_GE(period_ns, std::min(2 * sampling->empty_tick_ns(), std::int64_t{100'000}) - 1);
  EXPECT_LE(period_ns, 100'001);
  EXPECT_EQ(sampling->most_ticks_hz(), sampling->rate_hz() < 99'999 ? sampling->rate_hz() : 0);
  // AND a thread can be sampled at it
  sampling->start({os::current_tid()});
  run_registered(sampling, "worker", [&] { burn_until([&] { return sampling.samples().size() >= 10; }); });
  sampling->stop();
  sampling.expect_all_accounted_for();
}

// ---- threads that come and go ----

TEST_P(CpuSamplerControl, ThreadsThatDoNotRegisterAreFound) {
  // GIVEN a thread that was there before, and one that comes later
  Sampling sampling(at(1000));
  BusyThread before;
  sampling->start({os::current_tid()});
  const std::size_t at_start = sampling->thread_count();
  BusyThread later;
  EXPECT_EQ(sampling->thread_count(), at_start);
  // WHEN the sampler looks around
  sampling->poll();
  // THEN it knows both, and both are sampled
  EXPECT_EQ(sampling->thread_count(), at_start + 1);
  // A clock of the kernel's looks at a thread every few milliseconds, if that has the CPU just then: no amount of time
  // is sure to be enough.
  std::set<Tid> sampled;
  while (!sampled.contains(before.tid()) || !sampled.contains(later.tid()))
    for (const auto& taken : sampling.samples()) sampled.insert(sampling.threads()[taken.raw.thread.index()].tid);
}

TEST_P(CpuSamplerControl, ALookFindsThreadsThatHaveComeSinceTheLastOne) {
  Sampling sampling(at(1000));
  sampling->start({os::current_tid()});
  sampling->look_for_threads();
  const std::size_t at_start = sampling->thread_count();
  BusyThread later;
  sampling->look_for_threads();
  EXPECT_EQ(sampling->thread_count(), at_start + 1);
  sampling->look_for_threads();
  EXPECT_EQ(sampling->thread_count(), at_start + 1);
}

TEST_P(CpuSamplerControl, ThreadsThatEndWithoutAWordAreLetGo) {
  Sampling sampling(at(1000));
  BusyThread thread;
  sampling->start({os::current_tid()});
  while (sampling.sampled_cpu_ns() == 0) std::this_thread::yield();
  const std::size_t with_it = sampling->thread_count();
  thread.end();
  while (sampling->thread_count() == with_it) sampling->poll();
  // Its time is known up to the last look at it.
  sampling->stop();
  sampling.expect_all_accounted_for();
}

TEST_P(CpuSamplerControl, AThreadThatWasFoundBeforeItRegistersIsNotCountedTwice) {
  Sampling sampling(at(1000));
  const std::int64_t before = thread_cpu_ns();
  sampling->start({os::current_tid()});
  testing::ThreadUsed used;
  std::thread thread([&] {
    burn(5 * kMillisecond);
    sampling->poll();
    burn(20 * kMillisecond);
    sampling->thread_started("worker");
    burn(20 * kMillisecond);
    used.least_ns = thread_cpu_ns();
    sampling->thread_ending("worker");
    used.most_ns = thread_cpu_ns();
  });
  thread.join();
  sampling->stop();
  // THEN what it used before is known to be lost
  EXPECT_GE(sampling.dropped(DropReason::kMetLate).cpu_ns, 4 * kMillisecond);
  sampling.expect_told_of_between(used.least_ns, used.most_ns + thread_cpu_ns() - before);
}

TEST_P(CpuSamplerControl, ThreadsHaveTheNamesTheyWereGivenLast) {
  Sampling sampling(at(1000));
  sampling->start({os::current_tid()});
  std::vector<std::string> names;
  const auto take_name = [&] {
    for (const ThreadInfo& info : sampling->take_thread_changes())
      if (info.tid == os::current_tid()) names.push_back(info.name);
  };
  std::thread thread([&] {
    sampling->thread_started("first");
    sampling->name_thread(os::current_tid(), "second");
    sampling->name_thread(os::current_tid(), "");  // no name is no news
    sampling->name_thread(Tid{1}, "not ours");
    take_name();
    sampling->thread_ending("last");
    take_name();
  });
  thread.join();
  ASSERT_GE(names.size(), 2U);
  EXPECT_EQ(names[names.size() - 2], "second");
  EXPECT_EQ(names.back(), "last");
}

TEST_P(CpuSamplerControl, AThreadThatRegistersIsToldOfByItsNameAtOnce) {
  // GIVEN a thread that no poll has met
  Sampling sampling(at(1000));
  sampling->start({os::current_tid()});
  std::string name;
  std::thread thread([&] {
    // WHEN it registers, and the profile is written before its end
    sampling->thread_started("worker");
    for (const ThreadInfo& info : sampling->take_thread_changes())
      if (info.tid == os::current_tid()) name = info.name;
    sampling->thread_ending("worker");
  });
  thread.join();
  // THEN the profile has its name, and not the kernel's, which is the process's
  EXPECT_EQ(name, "worker");
}

// ---- threads that block the signal ----

TEST_P(CpuSamplerControl, AThreadThatBlocksTheSignalIsCountedAsSuchAndSampledOnceItDoesNot) {
  // GIVEN a thread that blocks all signals and works
  Sampling sampling(at(10'000));
  BusyThread thread(true);
  const std::int64_t before = thread.cpu_ns();
  sampling->start({os::current_tid()});
  while (sampling.dropped(DropReason::kSignalBlocked).count == 0) {
    thread.wait_for_cpu(kMillisecond);
    sampling->poll();
  }
  // THEN its time is known to be lost, and not sampled
  EXPECT_LE(sampling.dropped(DropReason::kSignalBlocked).cpu_ns, thread.cpu_ns() - before + kMillisecond);
  EXPECT_GT(sampling.dropped(DropReason::kSignalBlocked).cpu_ns, 5 * kMillisecond);
  EXPECT_TRUE(sampling.samples().empty());
  // WHEN it unblocks them THEN it is sampled within a while of its own time
  thread.unblock_signals();
  const std::int64_t patience = thread.cpu_ns() + 3000 * kMillisecond;
  while (sampling.samples().size() < 5 && thread.cpu_ns() < patience) {
    thread.wait_for_cpu(kMillisecond);
    sampling->poll();
  }
  EXPECT_GE(sampling.samples().size(), 5U);
  thread.end();
  sampling->stop();
  sampling.expect_all_accounted_for();
}

TEST(CpuSamplerWithATimer, AThreadWhoseTickRestsIsSampledAgainThoughWhatWakesItUpIsIgnored) {
  Sampling sampling({1000, os::TickClock::kMonotonic, 64});
  sampling->start({os::current_tid()});
  run_registered(sampling, "worker", [&] {
    burn_until([&] { return !sampling.samples().empty(); });
    // GIVEN a thread whose tick rests, as it has waited
    for (int i = 0; i < 3; ++i) ::usleep(10'000);
    // WHEN the signal is ignored in the moment in which the tick is to go on
    struct sigaction ignored {
    }, ours{};
    ignored.sa_handler = SIG_IGN;
    ::sigaction(interrupting_tick_signal(), &ignored, &ours);
    burn(20 * kMillisecond);
    ::sigaction(interrupting_tick_signal(), &ours, nullptr);
    // THEN it is sampled within a while nevertheless
    const std::size_t samples = sampling.samples().size();
    const std::int64_t patience = thread_cpu_ns() + 3000 * kMillisecond;
    while (sampling.samples().size() < samples + 5 && thread_cpu_ns() < patience) {
      burn(kMillisecond);
      sampling->poll();
    }
    EXPECT_GE(sampling.samples().size(), samples + 5);
  });
  sampling->stop();
  sampling.expect_all_accounted_for();
}

// ---- the end ----

TEST_P(CpuSamplerControl, AfterStopNoHandlerRunsAndPendingTicksAreHarmless) {
  // GIVEN a thread with ticks pending
  Sampling sampling(at(2000));
  sampling->start({os::current_tid()});
  std::thread thread([&] {
    const SignalsBlocked blocked;
    sampling->thread_started("worker");
    burn(20 * kMillisecond);
    // WHEN sampling stops before they are delivered, which the end of the scope does
    sampling->stop();
  });
  thread.join();
  // THEN they leave no trace
  EXPECT_TRUE(sampling.samples().empty());
  sampling.expect_all_accounted_for();
}

TEST_P(CpuSamplerControl, StopMayBeCalledTwiceAndTheSamplerMayGoWhileThreadsRun) {
  BusyThread one;
  BusyThread other;
  for (int turn = 0; turn < 50; ++turn) {
    // The ring and the sampler end with the scope: a handler that still ran would write into nothing.
    Sampling sampling(at(20'000), 0);
    sampling->start({os::current_tid()});
    one.wait_for_cpu(kMillisecond / 4);
    if (turn % 2 == 0) {
      sampling->stop();
      sampling->stop();
      sampling.expect_all_accounted_for();
    }
  }
}

TEST_P(CpuSamplerControl, ASignalThatNoTickSentIsCountedAndIgnored) {
  Sampling sampling(at(1000));
  sampling->start({os::current_tid()});
  const int signal = tick_signal();
  ASSERT_NE(signal, 0);
  ::pthread_kill(::pthread_self(), signal);
  sigval value{};
  value.sival_int = 0;
  ::sigqueue(::getpid(), signal, value);
  while (sampling.dropped(DropReason::kForeignSignal).count < 2) std::this_thread::yield();
  sampling->stop();
  EXPECT_TRUE(sampling.samples().empty());
}

TEST_P(CpuSamplerControl, NoHandlerOfTheProgramRunsInTheMiddleOfATicks) {
  // GIVEN a thread that computes while it blocks all signals, one of which has come by then, and in all likelihood a
  // tick
  static std::atomic<bool> is_in_a_tick;
  is_in_a_tick = false;
  static int tick;
  Sampling sampling(at(1000));
  sampling->start({os::current_tid()});
  tick = traps_are_ours() && GetParam() == os::TickClock::kPerf ? SIGTRAP : tick_signal();
  struct sigaction noted {
  }, before{};
  noted.sa_flags = SA_SIGINFO;
  noted.sa_sigaction = [](int, siginfo_t*, void* context) {
    is_in_a_tick = ::sigismember(&static_cast<ucontext_t*>(context)->uc_sigmask, tick) == 1;
  };
  ::sigaction(SIGUSR1, &noted, &before);
  run_registered(sampling, "worker", [&] {
    const SignalsBlocked blocked;
    burn(20 * kMillisecond);
    ::pthread_kill(::pthread_self(), SIGUSR1);
    // WHEN it takes them all
  });
  // THEN what the handler has interrupted is no tick
  EXPECT_FALSE(is_in_a_tick);
  sampling->stop();
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_P(CpuSamplerControl, TheChildOfAForkRunsOnWithoutTicks) {
  Sampling sampling(at(5000));
  sampling->start({});
  burn(5 * kMillisecond);
  const pid_t child = ::fork();
  if (child == 0) {
    sampling->abandon();
    const std::size_t samples = sampling.samples().size();
    burn(20 * kMillisecond);
    ::_exit(sampling.samples().size() == samples ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  // The parent's go on.
  const std::size_t samples = sampling.samples().size();
  burn_until([&] { return sampling.samples().size() > samples; });
  sampling->stop();
  sampling.expect_all_accounted_for();
}

TEST(CpuSamplerWithTraps, AThreadForWhichThereWasNoTickHasOneLater) {
  // GIVEN a thread with ticks that come as traps
  Sampling sampling({.rate_hz = 1000, .clock = os::TickClock::kPerf, .max_depth = 64});
  if (!sampling.created().ok() || !traps_are_ours()) GTEST_SKIP() << "no traps here";
  sampling->start({});
  const TrapsTaken taken;
  {
    // WHEN the program takes these for itself, and leaves neither descriptors nor timers
    const Limited descriptors(RLIMIT_NOFILE, 3);
    const Limited timers(RLIMIT_SIGPENDING, 0);
    sampling->poll();
    burn(20 * kMillisecond);
  }
  const std::size_t before = sampling.samples().size();
  // THEN it is sampled again as soon as there are some
  sampling->poll();
  EXPECT_GE(sampling.dropped(DropReason::kTooManyThreads).cpu_ns, 20 * kMillisecond);
  burn(50 * kMillisecond);
  sampling->stop();
  EXPECT_GT(sampling.samples().size(), before);
  sampling.expect_all_accounted_for();
}

INSTANTIATE_TEST_SUITE_P(Clock, CpuSamplerControl, testing::kEachClock, testing::clock_name);

}  // namespace
}  // namespace plimsoll::capture
