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
  [[nodiscard]] bool wants_flush() const override { return written_ns == 0; }
  Status flush(const Totals&, capture::SampleSink::Ending) override {
    constexpr std::int64_t kLong = 100'000'000;
    const std::int64_t start_ns = thread_cpu_ns();
    while (written_ns < kLong) written_ns = thread_cpu_ns() - start_ns;
    return Ok{};
  }
  std::int64_t written_ns = 0;  // CPU time
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
  // WHEN it is recorded until the second look, and to write what the first one saw takes long
  SessionSettings settings;
  constexpr std::int64_t kPeriod = 1'000'000;  // at 1000 Hz
  SlowSink sink;
  std::int64_t look_began_ns = 0, look_ns = 0, rest_ns = 0;
  const WaitUntil first_look_only = [&](std::int64_t time_ns) {
    if (sink.written_ns > 0) {
      look_ns = thread_cpu_ns() - look_began_ns - sink.written_ns;
      rest_ns = time_ns - monotonic_ns();
      return false;
    }
    os::sleep_until(time_ns);
    look_began_ns = thread_cpu_ns();
    return true;
  };
  const Result<SessionResult> result = record(target, settings, sink, first_look_only);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  // THEN the rest before the second one is four times as long as the first look, not as the writing
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result.value().looks, 1U);
  EXPECT_LE(rest_ns, 4 * look_ns + 2 * kPeriod);
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
