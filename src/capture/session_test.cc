// capture/session_test.cc: how a recording ends, whoever is about to do what with it.
#include "capture/session.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "capture/sampler_testing.h"
#include "os/os.h"

namespace plimsoll::capture {
namespace {

using testing::kMillisecond;
using testing::LoggingSink;
using testing::Sampling;

// What a test knows of a recording, and does where the drain thread is at work.
struct Observer {
  std::function<void()> at_work = [] {};
  std::vector<SampleSink::Ending> flushes;
  std::atomic<bool> has_ended{false};
};

class ObservedSink final : public LoggingSink {
 public:
  explicit ObservedSink(Observer& observer) : observer_(observer) {}
  void counter(const char*, const char*, std::int64_t, std::int64_t) override { observer_.at_work(); }
  Status flush(const Totals&, Ending ending) override {
    observer_.flushes.push_back(ending);
    if (ending == Ending::kComplete) observer_.has_ended.store(true);
    return Ok{};
  }

 private:
  Observer& observer_;
};

std::unique_ptr<Session> start(const SessionSettings& settings, Observer& observer) {
  Result<std::unique_ptr<Session>> session =
      Session::start(settings, Sampling::interpreter(), std::make_unique<ObservedSink>(observer));
  EXPECT_TRUE(session.ok());
  return session.take();
}

TEST(Session, AForkMayMeetTheEndOfARecording) {
  for (int i = 0; i < 20; ++i) {
    // GIVEN a recording that ends by itself in a moment, with a thread that reads
    SessionSettings settings;
    settings.tick.mode = Mode::kWall;
    settings.duration_ns = 2 * kMillisecond;
    std::atomic<bool> is_held{false};
    Observer observer;
    observer.at_work = [&] { EXPECT_FALSE(is_held.load()); };
    const std::unique_ptr<Session> session = start(settings, observer);
    // WHEN the program does nothing but fork THEN it ends all the same, and nobody is at work meanwhile
    while (!observer.has_ended.load()) {
      session->hold_for_fork();
      is_held.store(true);
      is_held.store(false);
      session->release_after_fork();
    }
    session->stop();
  }
}

TEST(Session, HasNoThreadWhileAProgramWithoutOthersForks) {
  if (testing::kHasThreadSanitizer) GTEST_SKIP() << "the sanitizer has a thread";
  for (const Mode mode : {Mode::kCpu, Mode::kWall}) {
    // GIVEN a recording, with a thread that reads or without one
    SessionSettings settings;
    settings.tick.mode = mode;
    Observer observer;
    const std::unique_ptr<Session> session = start(settings, observer);
    const std::size_t threads = os::count_threads();
    // WHEN it rests
    ASSERT_TRUE(session->rest_if_alone());
    // THEN the caller is the only thread, and waits for nobody
    EXPECT_EQ(os::count_threads(), 1U);
    EXPECT_FALSE(session->rest_if_alone());
    session->flush();
    const std::size_t flushes = observer.flushes.size();
    // AND when it is awake again, all goes on, and no thread of its own is sampled
    session->wake();
    EXPECT_EQ(os::count_threads(), threads);
    session->flush();
    EXPECT_EQ(observer.flushes.size(), flushes + 1);
    session->sampler().look_for_threads();
    EXPECT_EQ(session->sampler().thread_count(), 1U);
    session->stop();
    EXPECT_TRUE(observer.has_ended.load());
  }
}

TEST(Session, KeepsItsThreadsWhileAProgramForksThatHasOthers) {
  // GIVEN a program with two threads
  Observer observer;
  const std::unique_ptr<Session> session = start({}, observer);
  std::atomic<bool> is_over{false};
  std::thread other([&] { is_over.wait(false); });
  // WHEN one of them is about to fork THEN the recording does not rest
  const std::size_t threads = os::count_threads();
  EXPECT_FALSE(session->rest_if_alone());
  EXPECT_EQ(os::count_threads(), threads);
  is_over.store(true);
  is_over.notify_all();
  other.join();
}

TEST(Session, IsCompleteWhenWhoeverHoldsItForAForkStopsIt) {
  // GIVEN a recording that is held for a fork
  SessionSettings settings;
  settings.tick.mode = Mode::kWall;
  Observer observer;
  const std::unique_ptr<Session> session = start(settings, observer);
  session->hold_for_fork();
  // WHEN another hook of the fork stops it THEN it is complete, and nothing is left to release
  session->stop();
  EXPECT_TRUE(observer.has_ended.load());
  session->release_after_fork();
}

TEST(Session, IsCompleteWhenItIsStoppedWhileItRests) {
  if (testing::kHasThreadSanitizer) GTEST_SKIP() << "the sanitizer has a thread";
  // GIVEN a recording that rests
  SessionSettings settings;
  settings.tick.mode = Mode::kWall;
  Observer observer;
  const std::unique_ptr<Session> session = start(settings, observer);
  ASSERT_TRUE(session->rest_if_alone());
  // WHEN a hook of the program's stops it THEN it is complete, and does not wake
  session->stop();
  EXPECT_TRUE(observer.has_ended.load());
  session->wake();
  EXPECT_EQ(os::count_threads(), 1U);
}

TEST(Session, DeathsOfCodeAreWatchedWhenTheFirstTickComes) {
  static CodeRegistry* watching = nullptr;
  watching = nullptr;
  SessionSettings settings;
  settings.watch_deaths = [](CodeRegistry* registry) { watching = registry; };
  Observer observer;
  const std::unique_ptr<Session> session = start(settings, observer);
  EXPECT_EQ(watching, &session->registry());
}

TEST(Session, KeepsNothingOfDeathsOfCodeOnceItHasEndedByItself) {
  // GIVEN a recording that has ended, though nobody has stopped it yet
  SessionSettings settings;
  settings.duration_ns = kMillisecond;
  Observer observer;
  const std::unique_ptr<Session> session = start(settings, observer);
  testing::FakeFunction function("old");
  session->registry().seen().mark(function.address());
  const std::int64_t of_old = testing::later();
  while (!observer.has_ended.load()) std::this_thread::yield();
  session->stop();
  // WHEN a code object dies THEN nothing is kept of it
  session->registry().on_destroy(function.address());
  function.become("new");
  EXPECT_EQ(session->registry().find(function.address(), of_old)->info->name, "new");
}

TEST(Session, WhatItsThreadsUseInAPauseIsNotTakenOffTheProgramsTime) {
  // GIVEN a recording whose own thread has much to do while it is paused
  static std::atomic<bool> is_costly{false};
  static std::atomic<int> costs{0};
  SessionSettings settings;
  settings.before_drain = [] {
    if (!is_costly.load()) return;
    testing::burn(20 * kMillisecond);
    ++costs;
    costs.notify_all();
  };
  Observer observer;
  const std::unique_ptr<Session> session = start(settings, observer);
  const std::int64_t began_ns = thread_cpu_ns();
  testing::burn(20 * kMillisecond);
  const std::int64_t outside_ns = thread_cpu_ns() - began_ns;
  session->pause();
  is_costly.store(true);
  for (int seen = costs.load(); seen < 5; seen = costs.load()) costs.wait(seen);
  is_costly.store(false);
  // WHEN it is asked for the program's time THEN that is what passed outside of the pause: within, and behind it
  EXPECT_GE(session->stats().process_cpu_ns, outside_ns);
  session->resume();
  EXPECT_GE(session->stats().process_cpu_ns, outside_ns);
  EXPECT_GE(session->stop().process_cpu_ns, outside_ns);
}

}  // namespace
}  // namespace plimsoll::capture
