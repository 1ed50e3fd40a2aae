// capture/inferred_clock_test.cc
#include "capture/inferred_clock.h"

#include <gtest/gtest.h>

namespace plimsoll::capture {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

// A thread with a tick each millisecond of its CPU time, whose clock was read at its first tick.
struct TickedThread {
  TickedThread() {
    clock.restart(kMillisecond);
    EXPECT_FALSE(clock.infer(now)) << "nothing is known before the first tick";
    clock.read(now, cpu);
  }
  // It runs, and waits; then comes its tick.
  std::optional<std::int64_t> tick(std::int64_t ran_ns, std::int64_t waited_ns) {
    cpu += ran_ns;
    now += ran_ns + waited_ns;
    return clock.infer(now);
  }

  InferredClock clock;
  std::int64_t now = 7'000 * kMillisecond;
  std::int64_t cpu = 3 * kMillisecond;
};

TEST(InferredClock, ThreadThatRunsNeedsNoReading) {
  TickedThread thread;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(thread.tick(kMillisecond, 0), thread.cpu);
}

TEST(InferredClock, IsReadWhenTheThreadHasWaited) {
  TickedThread thread;
  EXPECT_FALSE(thread.tick(kMillisecond, kMillisecond / 2));
}

TEST(InferredClock, IsReadWhenATickCameEarly) {
  // GIVEN a tick that was late, so that the next follows it soon: in between the thread may have waited
  TickedThread thread;
  EXPECT_FALSE(thread.tick(kMillisecond / 2, 0));
}

TEST(InferredClock, IsReadWhenSeveralTicksBecameOne) {
  TickedThread thread;
  EXPECT_FALSE(thread.tick(3 * kMillisecond, 0));
}

TEST(InferredClock, ShortWaitsAreSettledAfterAFewTicks) {
  // GIVEN a thread that waits for 1 % of the time, between all its ticks
  TickedThread thread;
  std::int64_t off = 0;
  int inferred = 0;
  while (const auto cpu = thread.tick(kMillisecond, kMillisecond / 100)) {
    off = *cpu - thread.cpu;
    ++inferred;
  }
  // THEN it is off by those waits at most, until it is read
  EXPECT_EQ(inferred, 7);
  EXPECT_EQ(off, 7 * kMillisecond / 100);
  thread.clock.read(thread.now, thread.cpu);
  EXPECT_EQ(thread.tick(kMillisecond, 0), thread.cpu);
}

TEST(InferredClock, FollowsThePeriodAndForgetsWhatWasBeforeARestart) {
  TickedThread thread;
  thread.clock.vary(2 * kMillisecond);
  EXPECT_FALSE(thread.tick(kMillisecond, 0)) << "of another period";
  thread.clock.read(thread.now, thread.cpu);
  EXPECT_EQ(thread.tick(2 * kMillisecond, 0), thread.cpu);
  thread.clock.restart(kMillisecond);
  EXPECT_FALSE(thread.tick(kMillisecond, 0));
  EXPECT_EQ(thread.clock.last_read_ns(), thread.cpu - 3 * kMillisecond);
}

}  // namespace
}  // namespace plimsoll::capture
