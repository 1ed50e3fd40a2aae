#include "remote/session.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "base/clock.h"
#include "capture/testing.h"

namespace plimsoll::remote {
namespace {

// Whose first text takes long to write.
struct SlowSink : capture::testing::LoggingSink {
  [[nodiscard]] bool wants_flush() const override { return !has_flushed; }
  Status flush(const Totals&, capture::SampleSink::Ending) override {
    constexpr std::int64_t kLong = 100'000'000;
    const std::int64_t start_ns = thread_cpu_ns();
    while (!has_flushed && thread_cpu_ns() - start_ns < kLong) continue;
    has_flushed = true;
    return Ok{};
  }
  bool has_flushed = false;
};

TEST(Session, WhatItTakesToWriteIsNotTakenForLooks) {
  // GIVEN a process with a Python without threads in it
  const std::array<char, 65536> runtime{};
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::pause();
    ::_exit(0);
  }
  ASSERT_GT(pid, 0);
  Target target;
  target.pid = os::Pid{pid};
  target.layout = cpython::layout_from_table({3, 12, 1}).value();
  target.runtime = Address{reinterpret_cast<std::uint64_t>(runtime.data())};
  // WHEN it is recorded for half a second, a fifth of which it takes to write
  SessionSettings settings;
  settings.duration_ns = 500'000'000;
  SlowSink sink;
  const WaitUntil sleep = [](std::int64_t time_ns) {
    os::sleep_until(time_ns);
    return true;
  };
  const Result<SessionResult> result = record(target, settings, sink, sleep);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  // THEN it has been looked at behind that, not only after four times as long
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_TRUE(sink.has_flushed);
  EXPECT_LT(result.value().spared, 200U);
}

TEST(SessionSettings, HaveNoModeGilWhereNoThreadHoldsIt) {
  // GIVEN a Python without a GIL, and one with it
  using Threading = cpython::Version::Threading;
  SessionSettings settings;
  settings.sampler.mode = capture::Mode::kGil;
  Target target;
  target.layout.version = {3, 14, 0, Threading::kFree};
  // WHEN it is to be recorded THEN it is said why that cannot be
  const Status refused = check(target, settings);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kUnsupported);
  EXPECT_NE(refused.error().message.find("Python 3.14.0t is free-threaded"), std::string::npos);
  target.layout.version.threading = Threading::kGil;
  EXPECT_TRUE(check(target, settings).ok());
  // and another mode is possible
  target.layout.version.threading = Threading::kFree;
  settings.sampler.mode = capture::Mode::kCpu;
  EXPECT_TRUE(check(target, settings).ok());
}

}  // namespace
}  // namespace plimsoll::remote
