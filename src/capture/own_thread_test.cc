// capture/own_thread_test.cc: what threads of ours get of the program's signals, and what they survive.
#include "os/own_thread.h"

#include <gtest/gtest.h>

#include <new>

#include "base/ids.h"
#include "memory/local.h"

namespace plimsoll::capture {
namespace {

// What a thread of ours found out.
struct Seen {
  bool could_read = true;
  bool blocks_user_signals = false;
};

void* look_around(void* argument) {
  auto& seen = *static_cast<Seen*>(argument);
  std::uint64_t word = 0;
  seen.could_read = memory::LocalReader{}.load(Address{0x10}, word);
  sigset_t blocked;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  seen.blocks_user_signals = ::sigismember(&blocked, SIGUSR1) == 1 && ::sigismember(&blocked, SIGRTMIN) == 1;
  return nullptr;
}

TEST(OwnThread, SurvivesAGuardedLoadOfNothing) {
  ASSERT_TRUE(memory::FaultGuard::ensure_installed().ok());
  Seen seen;
  pthread_t thread{};
  ASSERT_EQ(os::start_own_thread(thread, "plimsoll-test", look_around, &seen), 0);
  ::pthread_join(thread, nullptr);
  EXPECT_FALSE(seen.could_read);
  EXPECT_TRUE(seen.blocks_user_signals);
  // AND its caller's signals are as they were
  sigset_t blocked;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  EXPECT_EQ(::sigismember(&blocked, SIGUSR1), 0);
}

TEST(OwnThread, WhatItsWorkThrowsIsThrownWhereItIsWaitedFor) {
  os::OwnThread thread;
  ASSERT_TRUE(thread.start("plimsoll-test", [] { throw std::bad_alloc(); }));
  EXPECT_THROW(thread.join(), std::bad_alloc);
  EXPECT_NO_THROW(thread.join());
  // AND nowhere, where nobody waits
  os::OwnThread other;
  ASSERT_TRUE(other.start("plimsoll-test", [] { throw std::bad_alloc(); }));
}

}  // namespace
}  // namespace plimsoll::capture
