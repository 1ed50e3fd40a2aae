#include "os/doorbell.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <thread>

namespace plimsoll::os {
namespace {

constexpr std::int64_t kForever = 3'600'000'000'000;  // the test runner's limit comes first

TEST(Doorbell, EndsTheWaitOfAnotherThread) {
  Doorbell bell;
  std::atomic<int> work{0};
  std::atomic<int> done{0};
  // GIVEN a thread that waits each time it has done what there was
  std::jthread worker([&] {
    while (done.load() < 1000) {
      bell.wait_for(kForever);
      done.store(work.load());
    }
  });
  // WHEN it is rung for each piece THEN each is done
  for (int i = 1; i <= 1000; ++i) {
    work.store(i);
    bell.ring();
    while (done.load() < i) std::this_thread::yield();
  }
}

TEST(Doorbell, IsHeardByAWaitThatBeginsLater) {
  Doorbell bell;
  bell.ring();
  EXPECT_TRUE(bell.wait_for(kForever));
}

TEST(Doorbell, OfOneRingOneWaitHearsAndTheNextOnesEndInTime) {
  Doorbell bell;
  bell.ring();
  bell.wait_for(kForever);
  EXPECT_FALSE(bell.wait_for(1000));
  EXPECT_FALSE(bell.wait_for(0));
}

Doorbell handlers_bell;

TEST(Doorbell, IsRungBySignalHandlersWhichDoNotSeeItsErrors) {
  // GIVEN a handler that rings
  struct sigaction before {};
  struct sigaction ours {};
  ours.sa_handler = [](int) { handlers_bell.ring(); };
  ASSERT_EQ(::sigaction(SIGUSR1, &ours, &before), 0);
  errno = ENOTTY;
  // WHEN the waiting thread is interrupted by it, before or in its wait
  ::raise(SIGUSR1);
  // THEN the wait ends, and what was interrupted finds its errno
  EXPECT_EQ(errno, ENOTTY);
  EXPECT_TRUE(handlers_bell.wait_for(kForever));
  ::sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace plimsoll::os
