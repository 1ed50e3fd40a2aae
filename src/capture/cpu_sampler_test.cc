// capture/cpu_sampler_test.cc: what the sampler records is what the threads did, and no time is lost without a word.
#include "capture/cpu_sampler.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <optional>

#include "base/no_memory_testing.h"
#include "capture/sampler_testing.h"

namespace plimsoll::capture {
namespace {

using testing::burn;
using testing::burn_until;
using testing::FakeFrame;
using testing::FakeFunction;
using testing::kMillisecond;
using testing::run_registered;
using testing::RunsPython;
using testing::Sampling;

// A function that has called itself.
class DeepStack {
 public:
  DeepStack(const FakeFunction& function, std::size_t depth) : frames_(depth) {
    for (std::size_t i = 0; i < depth; ++i)
      frames_[i] = function.frame(2 * (i % 32), i == 0 ? nullptr : &frames_[i - 1]);
  }
  [[nodiscard]] const FakeFrame& innermost() const { return frames_.back(); }

 private:
  std::vector<FakeFrame> frames_;
};

// The calling thread stays on some of its CPUs, for the scope.
class StaysOn {
 public:
  explicit StaysOn(const cpu_set_t& cpus) {
    ::sched_getaffinity(0, sizeof before_, &before_);
    ::sched_setaffinity(0, sizeof cpus, &cpus);
  }
  StaysOn(const StaysOn&) = delete;
  StaysOn& operator=(const StaysOn&) = delete;
  ~StaysOn() { ::sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_{};
};

// A thread that gives its CPU to nobody, for the scope.
class CpuIsTaken {
 public:
  explicit CpuIsTaken(const cpu_set_t& cpu)
      : thread_([this, &cpu] {
          const StaysOn stays(cpu);
          const sched_param lowest{1};
          has_it_ = ::sched_setscheduler(0, SCHED_FIFO, &lowest) == 0;
          is_known_ = true;
          while (has_it_ && !is_over_) std::atomic_signal_fence(std::memory_order_seq_cst);
        }) {
    while (!is_known_) std::this_thread::yield();
  }
  CpuIsTaken(const CpuIsTaken&) = delete;
  CpuIsTaken& operator=(const CpuIsTaken&) = delete;
  ~CpuIsTaken() {
    is_over_ = true;
    thread_.join();
  }
  [[nodiscard]] bool has_it() const { return has_it_; }

 private:
  std::atomic<bool> has_it_{false}, is_known_{false}, is_over_{false};
  std::thread thread_;
};

class CpuSamplerWith : public testing::WithEachClock {};

// ---- native code ----

TEST(CpuSamplerNative, RingsOnceForCodeThatIsNotKnown) {
  if (!native::kCanUnwind) GTEST_SKIP() << "machine code is not unwound here";
  ASSERT_TRUE(memory::FaultGuard::ensure_installed().ok());
  // GIVEN a sampler for which no code is known
  const memory::Image nothing;
  native::Modules modules(nothing, {}, [](const os::Mapping&) { return UniqueFd(); });
  ASSERT_TRUE(modules.refresh(1).ok());
  os::Doorbell bell;
  TickSettings settings{.rate_hz = 1, .clock = os::TickClock::kThreadCpu};
  settings.modules = &modules;
  settings.bell = &bell;
  Sampling sampling(settings);
  sampling->start({});
  siginfo_t info{};
  info.si_code = SI_TIMER;  // of the first slot, which is this thread's
  ucontext_t context;
  ASSERT_EQ(::getcontext(&context), 0);
  const auto rings_at_tick = [&] {
    burn(kMillisecond);
    sampling->tick(info, &context);
    return bell.wait_for(0);
  };
  // WHEN it ticks THEN whoever keeps what is known is woken, once, as that has not changed
  EXPECT_TRUE(rings_at_tick());
  EXPECT_FALSE(rings_at_tick());
  EXPECT_FALSE(rings_at_tick());
  sampling->stop();
}

// ---- time ----

TEST_P(CpuSamplerWith, WeightsAndDropsAddUpToTheThreadsOwnClocks) {
  // GIVEN threads that work side by side
  Sampling sampling(at(1000));
  sampling->start({});
  std::vector<std::thread> threads;
  std::vector<testing::ThreadUsed> used(3);
  for (std::size_t i = 0; i < used.size(); ++i)
    threads.emplace_back(
        [&, i] { used[i] = run_registered(sampling, "worker " + std::to_string(i), [] { burn(60 * kMillisecond); }); });
  for (std::thread& thread : threads) thread.join();
  // WHEN it is over
  sampling->stop();
  // THEN nothing is missing, and each thread's clock is what the thread says
  sampling.expect_all_accounted_for();
  for (std::size_t i = 0; i < used.size(); ++i) {
    const std::string name = "worker " + std::to_string(i);
    std::int64_t sampled = 0;
    for (const auto& taken : sampling.samples_of(name)) sampled += taken.raw.weight_ns;
    std::size_t told = 0;
    for (const auto& [serial, info] : sampling.threads()) {
      if (info.name != name) continue;
      ++told;
      EXPECT_GE(info.cpu_ns, used[i].least_ns) << name;
      EXPECT_LE(info.cpu_ns, used[i].most_ns) << name;
      EXPECT_LE(sampled, info.cpu_ns + sampling.period_ns()) << name;
    }
    EXPECT_EQ(told, 1U) << name;
  }
}

TEST_P(CpuSamplerWith, ShortThreadsLaidEndToEndAreSampledLikeOneLongOne) {
  // GIVEN threads that each end before their first tick is due
  Sampling sampling(at(1000));
  sampling->start({os::current_tid()});
  testing::ThreadUsed used;
  std::vector<std::int64_t> lengths;
  for (int i = 0; i < 300; ++i) {
    const auto [least_ns, most_ns] = run_registered(sampling, "short", [] { burn(kMillisecond / 3); });
    used.least_ns += least_ns;
    used.most_ns += most_ns;
    lengths.push_back(most_ns);
  }
  sampling->stop();
  // THEN their time together is, as well as evenly spread phases can tell: N times the discrepancy of their sequence.
  // Of threads that are longer than most, as a machine makes some, each is off by up to half a period, at random.
  // (To start a thread takes time of the thread's own, which is a multiple of its work under ThreadSanitizer.)
#ifdef __SANITIZE_THREAD__
  constexpr std::int64_t kPeriods = 60;
#else
  constexpr std::int64_t kPeriods = 12;
#endif
  std::sort(lengths.begin(), lengths.end());
  const std::int64_t longer_ns = lengths[lengths.size() / 2] + sampling.period_ns() / 4;
  const auto longer = lengths.end() - std::upper_bound(lengths.begin(), lengths.end(), longer_ns);
  sampling.expect_all_accounted_for(kPeriods + std::llround(2 * std::sqrt(static_cast<double>(longer))));
  EXPECT_GE(sampling.threads_cpu_ns(), used.least_ns);
  EXPECT_LE(sampling.threads_cpu_ns(), used.most_ns);
  // AND, where ticks come as often as they are asked for, nearly all of it by samples
  if (GetParam() == os::TickClock::kThreadCpu) return;  // these come at scheduler ticks, which such threads seldom meet
  EXPECT_GT(sampling.sampled_cpu_ns(), used.least_ns / 2);
  EXPECT_GT(static_cast<std::int64_t>(sampling.samples().size()), used.least_ns / sampling.period_ns() / 4);
}

TEST(CpuSamplerPhases, AreNotSoShortThatAThreadOnlyTakesInterrupts) {
  const Sampling trial(TickSettings{1000, os::TickClock::kPerf, 64});
  if (!trial.created().ok()) GTEST_SKIP() << trial.created().error().message;
  // GIVEN threads whose first ticks are spread over a period
  Sampling sampling(TickSettings{1000, os::TickClock::kPerf, 64});
  sampling->start({os::current_tid()});
  constexpr std::int64_t kInterrupt = 10'000;
  std::int64_t soonest = sampling.period_ns();
  for (int i = 0; i < 300; ++i)
    run_registered(sampling, "short", [&] {
      sampling->for_each_thread([&](const ThreadSlot& slot) { soonest = std::min(soonest, slot.tick_set_ns); });
    });
  sampling->stop();
  // THEN even the soonest is some interrupts away
  EXPECT_GE(soonest, 5 * kInterrupt);
  EXPECT_LT(soonest, 10 * kInterrupt);
}

TEST_P(CpuSamplerWith, SamplesOfAThreadAreInOrderOfTime) {
  Sampling sampling(at(2000));
  sampling->start({os::current_tid()});
  run_registered(sampling, "worker", [&] { burn_until([&] { return sampling.samples().size() >= 20; }); });
  sampling->stop();
  std::int64_t last = 0;
  for (const auto& taken : sampling.samples()) {
    EXPECT_GT(taken.raw.time_ns, last);
    EXPECT_GT(taken.raw.weight_ns, 0);
    last = taken.raw.time_ns;
  }
}

TEST_P(CpuSamplerWith, TimeThatHasNoRoomInTheRingIsCountedAsDropped) {
  // GIVEN the smallest ring, nobody who drains it, and a thread that goes from one deep recursion to another, so that
  // each sample has a whole stack to tell
  const FakeFunction recurse("recurse"), other("other");
  const DeepStack stack(recurse, 1000), other_stack(other, 1000);
  Sampling sampling(at(1000, 1024), 0);
  sampling->start({os::current_tid()});
  run_registered(sampling, "worker", [&] {
    RunsPython python(&stack.innermost());
    for (bool is_other = false; sampling.dropped(DropReason::kRingFull).count == 0; is_other = !is_other) {
      python.go_to(&(is_other ? other_stack : stack).innermost());
      burn(kMillisecond / 10);
    }
  });
  sampling->stop();
  EXPECT_GT(sampling.dropped(DropReason::kRingFull).cpu_ns, 0);
  sampling.expect_all_accounted_for();
}

// ---- stacks ----

TEST_P(CpuSamplerWith, EveryStackIsOneThatTheThreadHad) {
  // GIVEN a thread that goes back and forth between two stacks
  const FakeFunction main("main"), left("left"), right("right"), inner("inner");
  const FakeFrame root = main.frame(16);
  const FakeFrame one = left.frame(0, &root);
  const FakeFrame other = right.frame(0, &root);
  const FakeFrame leaf = inner.frame(32, &other);
  Sampling sampling(at(5000));
  sampling->start({os::current_tid()});
  run_registered(sampling, "worker", [&] {
    RunsPython python(&one);
    const std::int64_t end = thread_cpu_ns() + 60 * kMillisecond;
    while (thread_cpu_ns() < end || !sampling.has_python())
      for (int i = 0; i < 100; ++i) {
        python.go_to(&leaf);
        python.go_to(&one);
      }
  });
  sampling->stop();
  // THEN samples show one or the other, and nothing in between
  for (const auto& taken : sampling.samples()) {
    if (taken.raw.python == RawSample::Python::kNoState) continue;  // before and after
    EXPECT_EQ(taken.raw.stop, cpython::WalkStop::kComplete);
    std::vector<std::pair<Address, std::int32_t>> stack;
    for (const cpython::PyFrame& frame : taken.frames) stack.emplace_back(frame.code, frame.position);
    const decltype(stack) first{{left.address(), 0}, {main.address(), 16}};
    const decltype(stack) second{{inner.address(), 32}, {right.address(), 0}, {main.address(), 16}};
    EXPECT_TRUE(stack == first || stack == second);
  }
  // AND the code objects on them are known to have been seen
  EXPECT_TRUE(sampling.seen().may_contain(main.address()));
}

TEST_P(CpuSamplerWith, AStackThatCannotBeProvenIsDroppedWithItsTime) {
  // GIVEN a thread whose outer frame is not one
  const FakeFunction main("main"), worker("worker");
  FakeFrame broken = main.frame(0);
  broken.owner = 99;
  const FakeFrame leaf = worker.frame(0, &broken);
  Sampling sampling(at(1000));
  sampling->start({os::current_tid()});
  run_registered(sampling, "worker", [&] {
    const RunsPython python(&leaf);
    burn_until([&] { return sampling.dropped(DropReason::kBadOwner).count > 0; });
  });
  sampling->stop();
  EXPECT_GT(sampling.dropped(DropReason::kBadOwner).cpu_ns, 0);
  sampling.expect_all_accounted_for();
  EXPECT_FALSE(sampling.seen().may_contain(worker.address()));
}

TEST_P(CpuSamplerWith, ADeepStackIsCutAtTheDepthThatWasAskedFor) {
  const FakeFunction recurse("recurse");
  const DeepStack stack(recurse, 10);
  Sampling sampling(at(1000, 4));
  sampling->start({os::current_tid()});
  run_registered(sampling, "worker", [&] {
    const RunsPython python(&stack.innermost());
    burn_until([&] { return sampling.has_python(); });
  });
  sampling->stop();
  for (const auto& taken : sampling.samples()) {
    if (taken.raw.python == RawSample::Python::kNoState) continue;
    EXPECT_EQ(taken.raw.stop, cpython::WalkStop::kTruncated);
    ASSERT_EQ(taken.frames.size(), 4U);
    EXPECT_EQ(taken.frames[0].position, 9 * 2);
    EXPECT_EQ(taken.frames[3].position, 6 * 2);
  }
}

TEST_P(CpuSamplerWith, ATickLeavesErrnoAlone) {
  Sampling sampling(at(5000));
  sampling->start({os::current_tid()});
  run_registered(sampling, "worker", [&] {
    errno = EDOM;
    burn_until([&] { return !sampling.samples().empty(); });
    EXPECT_EQ(errno, EDOM);
  });
  sampling->stop();
}

INSTANTIATE_TEST_SUITE_P(Clock, CpuSamplerWith, testing::kEachClock, testing::clock_name);

// ---- settings ----

TEST(CpuSampler, TakesAClockThatWorksHereIfNoneIsAskedFor) {
  const Sampling sampling(TickSettings{});
  EXPECT_TRUE(sampling.created().ok());
}

TEST(CpuSampler, SaysWhyAClockThatIsForbiddenCannotBeHad) {
  const Sampling sampling(TickSettings{1000, os::TickClock::kPerf, 64});
  if (sampling.created().ok()) return;  // perf events are allowed here
  EXPECT_NE(sampling.created().error().message.find("perf_event_open"), std::string::npos);
}

TEST(CpuSampler, RefusesRatesThatMakeNoSense) {
  for (const double rate : {0.0, -1.0, 0.5, 100'001.0, double{INFINITY}, std::nan("")}) {
    const Sampling sampling(TickSettings{rate, os::TickClock::kMonotonic, 64});
    ASSERT_FALSE(sampling.created().ok()) << rate;
    EXPECT_EQ(sampling.created().error().kind, ErrorKind::kUsage);
  }
  EXPECT_TRUE(Sampling(TickSettings{1, os::TickClock::kMonotonic, 64}).created().ok());
  EXPECT_TRUE(Sampling(TickSettings{100'000, os::TickClock::kMonotonic, 64}).created().ok());
}

// ---- what there is not much of ----

TEST(CpuSampler, ThreadsThatHaveEndedLeaveTheirDescriptorsToOthers) {
  const Sampling trial(TickSettings{1000, os::TickClock::kPerf, 64});
  if (!trial.created().ok()) GTEST_SKIP() << trial.created().error().message;
  // GIVEN a process that may have few descriptors, of which a quarter is for ticks
  rlimit limits{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limits), 0);
  const rlimit few{64, limits.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  Sampling sampling(TickSettings{1000, os::TickClock::kPerf, 64});
  sampling->start({os::current_tid()});
  // WHEN more threads than that come and go, one after the other
  std::vector<os::TickClock> clocks;
  for (int i = 0; i < 40; ++i)
    run_registered(sampling, "worker", [&] {
      sampling->for_each_thread([&](const ThreadSlot& slot) {
        if (slot.tid == os::current_tid()) clocks.push_back(slot.tick.clock());
      });
    });
  sampling->stop();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limits), 0);
  // THEN each has the clock that was asked for
  EXPECT_EQ(clocks, std::vector(40, os::TickClock::kPerf));
}

TEST(CpuSampler, AThreadThatEndsWithoutMemoryIsAccountedFor) {
  if (!plimsoll::testing::NoMemory::kCanBe) GTEST_SKIP() << "the sanitizer's allocator ends the process";
  Sampling sampling(TickSettings{1000, std::nullopt, 64});
  sampling->start({os::current_tid()});
  // GIVEN a thread that takes leave when no memory is left
  Tid tid{};
  std::thread thread([&] {
    tid = os::current_tid();
    const std::string name(100, 'n');
    sampling->thread_started("worker");
    burn(20 * kMillisecond);
    const plimsoll::testing::NoMemory none;
    sampling->thread_ending(name);
  });
  thread.join();
  while (os::thread_cpu_ns(tid) != 0) std::this_thread::yield();  // the kernel knows it a moment longer
  // WHEN it is looked for THEN it is known to have ended, and nothing is missing
  sampling->poll();
  ASSERT_EQ(sampling.threads().size(), 1U);
  EXPECT_TRUE(sampling.threads().begin()->second.has_ended);
  sampling->stop();
}

TEST(CpuSampler, AThreadThatHasNotHadACpuYetHasNotEnded) {
  cpu_set_t all, others, last;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "there is one CPU";
  if (testing::kHasThreadSanitizer) GTEST_SKIP() << "no thread waits for its first CPU under the sanitizer";
  CPU_ZERO(&last);
  for (int cpu = CPU_SETSIZE - 1; CPU_COUNT(&last) == 0; --cpu)
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &last);
  CPU_XOR(&others, &all, &last);
  const StaysOn stays(others);
  Sampling sampling(TickSettings{1000, std::nullopt, 64});
  sampling->start({os::current_tid()});
  // GIVEN a thread that waits for its first CPU, which another one keeps
  pthread_attr_t attributes;
  ASSERT_EQ(::pthread_attr_init(&attributes), 0);
  ::pthread_attr_setaffinity_np(&attributes, sizeof last, &last);
  Tid tid{};
  const auto body = [](void* to) -> void* {
    *static_cast<Tid*>(to) = os::current_tid();
    return nullptr;
  };
  pthread_t thread{};
  {
    const CpuIsTaken taken(last);
    if (!taken.has_it()) GTEST_SKIP() << "only root may take a CPU for itself";
    ASSERT_EQ(::pthread_create(&thread, &attributes, body, &tid), 0);
    // WHEN it is found, and looked at again
    sampling->poll();
    sampling->poll();
  }
  ::pthread_join(thread, nullptr);
  ::pthread_attr_destroy(&attributes);
  sampling->stop();
  // THEN it is one thread, and not one that has ended and another one
  EXPECT_EQ(std::ranges::count_if(sampling.threads(), [&](const auto& known) { return known.second.tid == tid; }), 1);
}

TEST(CpuSampler, EveryReasonToDropHasWords) {
  for (std::size_t i = 0; i < kDropReasonCount; ++i) EXPECT_STRNE(text(static_cast<DropReason>(i)), "?");
}

}  // namespace
}  // namespace plimsoll::capture
