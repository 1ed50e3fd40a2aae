#include "os/termination.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <mutex>
#include <thread>

namespace plimsoll::os {
namespace {

// What becomes of a child that does this.
template <typename Body>
int status_of(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

// Whether it ended by the signal.
bool ended_by(int status, int signal) { return WIFSIGNALED(status) && WTERMSIG(status) == signal; }

// Waits for the end of the process, says a word then, and lets it end.
void speak_at_the_end(Doorbell& bell, int to) {
  while (!is_ending()) bell.wait_for(1'000'000'000);
  EXPECT_EQ(::write(to, "x", 1), 1);
  end_now();
}

// A process that somebody watches, and whose `body` brings it to its end by a signal: it ends by that, when all was
// said.
template <typename Body>
void expect_last_words(int signal, Body body) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const int status = status_of([&] {
    Doorbell bell;
    watch_termination(bell);
    body(bell, pipe[1]);
  });
  ::close(pipe[1]);
  EXPECT_TRUE(ended_by(status, signal)) << status;
  char said = 0;
  EXPECT_EQ(::read(pipe[0], &said, 1), 1);
  ::close(pipe[0]);
}

// Likewise of one that does `before`, and raises the signal then.
template <typename Before>
void expect_last_words_after(int signal, Before before) {
  expect_last_words(signal, [&](Doorbell& bell, int to) {
    before();
    std::thread watching(speak_at_the_end, std::ref(bell), to);
    ::raise(signal);
    watching.join();
  });
}

TEST(Termination, WhoeverWatchesSpeaksBeforeTheSignalEndsTheProcess) {
  for (const int signal : {SIGTERM, SIGHUP}) expect_last_words_after(signal, [] {});
}

TEST(Termination, EndsWithoutLastWordsWhereNobodyHasAny) {
  // GIVEN nobody who answers, who watches still, or who exists
  for (void (*const leave)() : {+[] {}, +[] { stop_watching_termination(); }, +[] { forget_termination(); }})
    for (const int signal : {SIGTERM, SIGHUP}) {
      const int status = status_of([&] {
        Doorbell bell;
        watch_termination(bell);
        leave();
        ::raise(signal);
        for (;;) ::pause();
      });
      EXPECT_TRUE(ended_by(status, signal)) << status;
    }
}

TEST(Termination, WhoeverHoldsWhatTheLastWordsNeedGoesOnUntilTheyAreSaid) {
  expect_last_words(SIGTERM, [](Doorbell& bell, int to) {
    std::mutex held;
    std::thread watching([&] {
      while (!is_ending()) bell.wait_for(1'000'000'000);
      const std::lock_guard guard(held);
      speak_at_the_end(bell, to);
    });
    // GIVEN a thread that gets the signal while it holds what whoever watches asks for
    held.lock();
    ::raise(SIGTERM);
    // WHEN it gives that back THEN all is said, and the signal ends the process
    held.unlock();
    for (;;) ::pause();
  });
}

TEST(Termination, WhoeverStopsToWatchInTheMeantimeEndsTheProcess) {
  const int status = status_of([] {
    Doorbell bell;
    watch_termination(bell);
    // GIVEN nobody who has answered until the thread went on
    ::raise(SIGTERM);
    stop_watching_termination();
  });
  EXPECT_TRUE(ended_by(status, SIGTERM)) << status;
}

TEST(Termination, ASecondSignalEndsTheProcessAtOnce) {
  const int status = status_of([] {
    Doorbell bell;
    watch_termination(bell);
    ::raise(SIGTERM);
    ::raise(SIGHUP);
  });
  EXPECT_TRUE(ended_by(status, SIGHUP)) << status;
}

TEST(Termination, WhatTheProgramHandlesOrIgnoresIsLeftAlone) {
  const int status = status_of([] {
    // GIVEN a program that ignores one signal, and handles the other
    ::signal(SIGHUP, SIG_IGN);
    ::signal(SIGTERM, [](int) { ::_exit(7); });
    Doorbell bell;
    watch_termination(bell);
    // THEN both are as they were
    ::raise(SIGHUP);
    if (is_ending()) ::_exit(1);
    ::raise(SIGTERM);
  });
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(Termination, AHandlerThatIsTakenBackLeavesTheLastWordsToWhoeverWatches) {
  for (const int signal : {SIGTERM, SIGHUP})
    expect_last_words_after(signal, [&] {
      // GIVEN a program that has a handler for a while
      ::signal(signal, [](int) {});
      look_at_termination_again();
      ::raise(signal);
      if (is_ending()) ::_exit(1);
      ::signal(signal, SIG_DFL);
      look_at_termination_again();
    });
}

TEST(Termination, NothingIsLookedAtWhereNobodyWatches) {
  const int status = status_of([] {
    look_at_termination_again();
    struct sigaction now {};
    ::sigaction(SIGTERM, nullptr, &now);
    if (now.sa_handler != SIG_DFL) ::_exit(1);
  });
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Termination, WaitsWhileItIsBlocked) {
  const int status = status_of([] {
    Doorbell bell;
    watch_termination(bell);
    // GIVEN what must not be cut short
    const SignalsBlocked blocked = termination_blocked();
    ::raise(SIGTERM);
    // THEN the signal comes after it
    if (is_ending()) ::_exit(1);
    stop_watching_termination();
  });
  EXPECT_TRUE(ended_by(status, SIGTERM)) << status;
}

TEST(Termination, AHandlerThatComesLaterStays) {
  const int status = status_of([] {
    Doorbell bell;
    watch_termination(bell);
    ::signal(SIGTERM, [](int) { ::_exit(7); });
    stop_watching_termination();
    ::raise(SIGTERM);
  });
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

}  // namespace
}  // namespace plimsoll::os
