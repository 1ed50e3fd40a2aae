// base/steps_testing.h: how many instructions something takes, counted one by one; for tests only.
#pragma once

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace plimsoll::testing {

// Instructions that `count` calls of `body` take in a process of its own; -1 if nobody may trace here.
template <typename Body>
long steps_of(Body body, int count) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(99);
    ::raise(SIGSTOP);
    for (int i = 0; i < count; ++i) body();
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFSTOPPED(status)) return -1;
  long steps = 0;
  while (true) {
    if (::ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0) break;
    ::waitpid(child, &status, 0);
    if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP) break;
    ++steps;
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return steps;
}

// Instructions of one call in a loop, without what comes before and after it.
template <typename Body>
long steps_of_one(Body body) {
  constexpr int kRepeats = 50;
  const long once = steps_of(body, kRepeats);
  return once < 0 ? once : (steps_of(body, 2 * kRepeats) - once) / kRepeats;
}

}  // namespace plimsoll::testing
