// capture/session_test.cc: how a recording ends, whoever is about to do what with it.
#include "capture/session.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
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

}  // namespace
}  // namespace plimsoll::capture
