// capture/session_test.cc: how a recording ends, whoever is about to do what with it.
#include "capture/session.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "capture/sampler_testing.h"

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

}  // namespace
}  // namespace plimsoll::capture
