// capture/thread_clocks_test.cc
#include "capture/thread_clocks.h"

#include <gtest/gtest.h>

#include <vector>

namespace plimsoll::capture {
namespace {

TEST(ThreadClocks, EachNanosecondIsCountedOnceThoughClocksAreReadLate) {
  // GIVEN a thread that runs, then waits, then runs: its clocks are read at 100, 200, 300 and 400, but the CPU clock at
  // 200 only when it had run for 30 more
  const std::vector<ThreadClocks> read{{100, 10, 0}, {200, 140, 0}, {300, 150, 0}, {400, 250, 0}};
  ThreadClocks looked = read[0];
  std::int64_t waited = 0;
  for (const ThreadClocks& clocks : read) {
    const ThreadClocks now = fitted(looked, clocks);
    waited += time_spent(looked, now, 0).wait_ns;
    looked = now;
  }
  // THEN it waited for what is left of its time, and no more
  EXPECT_EQ(waited, (400 - 100) - (250 - 10));
}

TEST(ThreadClocks, WhatTheKernelCountsLaterIsNotToldTwice) {
  // GIVEN 40 in the queue, told of when the thread was found there, and counted by the kernel when it had left
  const ThreadClocks from{100, 10, 0};
  const TimeSpent in_queue = time_spent(from, {140, 10, 0}, 0);
  EXPECT_EQ(in_queue.wait_ns, 40);
  // WHEN it has run for 20, and waited for 5 in the queue again, THEN only these are new
  const TimeSpent later = time_spent({140, 10, 0}, {175, 30, 45}, 40);
  EXPECT_EQ(later.told_ns, 40);
  EXPECT_EQ(later.ready_ns, 5);
  EXPECT_EQ(later.wait_ns, 10);
}

}  // namespace
}  // namespace plimsoll::capture
