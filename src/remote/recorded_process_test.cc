#include "remote/recorded_process.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "capture/testing.h"

namespace plimsoll::remote {
namespace {

// What a child has that has our memory, as one of vfork, until it calls exec.
struct Child {
  std::array<int, 2> go{}, became{};
  alignas(16) std::array<char, 65536> stack{};

  // (It never returns, and what a sanitizer has marked in its stack, which is part of ours, would stay.)
  [[gnu::no_sanitize_address]] static int run(void* argument) {
    const auto& self = *static_cast<Child*>(argument);
    char byte = 0;
    (void)!::read(self.go[0], &byte, 1);
    ::dup2(self.became[1], STDOUT_FILENO);
    ::execl("/bin/sh", "sh", "-c", "echo; exec sleep 100", nullptr);
    ::_exit(1);
  }
};

TEST(RecordedProcess, OfVforkIsAnotherOnceItHasCalledExec) {
  // GIVEN a child that has its parent's memory, with a Python without threads in it
  Child child;
  ASSERT_EQ(::pipe(child.go.data()), 0);
  ASSERT_EQ(::pipe(child.became.data()), 0);
  const pid_t pid = ::clone(&Child::run, child.stack.data() + child.stack.size(), CLONE_VM | SIGCHLD, &child);
  ASSERT_GT(pid, 0);
  const std::array<char, 65536> runtime{};
  Target target;
  target.pid = os::Pid{pid};
  target.layout = cpython::layout_from_table({3, 12, 1}).value();
  target.runtime = Address{reinterpret_cast<std::uint64_t>(runtime.data())};
  ProbeRoom probes(100);
  capture::testing::LoggingSink sink;
  SharedNumbers numbers;
  RecordedProcess process(target, {}, {probes}, sink, numbers);
  process.update(true);
  EXPECT_TRUE(process.goes_on());
  // WHEN it becomes another program, while its parent keeps the memory
  char byte = 0;
  EXPECT_EQ(::write(child.go[1], &byte, 1), 1);
  EXPECT_EQ(::read(child.became[0], &byte, 1), 1);
  process.update(true);
  // THEN it is not the same
  EXPECT_FALSE(process.goes_on());
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  for (const int each : {child.go[0], child.go[1], child.became[0], child.became[1]}) ::close(each);
}

}  // namespace
}  // namespace plimsoll::remote
