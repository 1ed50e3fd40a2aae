// profile/live_window_test.cc: the last seconds of a session, filled by hand.
#include "profile/live_window.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "profile/flat.h"

namespace plimsoll::profile {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kSecond = 1'000 * kMillisecond;

// A session of two threads, on a clock that the test moves.
class LiveWindowTest : public testing::Test {
 protected:
  explicit LiveWindowTest(std::size_t memory_bytes = std::size_t{32} << 20U)
      : window_({60 * kSecond, memory_bytes, {1, 0, "app"}, Tid{1}}), begin_ns_(monotonic_ns()) {
    window_.begin_anew(begin_ns_);
    see_threads(0);
  }

  void see_threads(std::int64_t at_ns) {
    for (int i = 0; i < 2; ++i)
      window_.thread({capture::ThreadSerial{static_cast<std::size_t>(i)}, Tid{i + 1}, i == 0 ? "main" : "worker",
                      begin_ns_, begin_ns_ + at_ns, 0});
  }
  // A sample of main -> leaf(number), whose code objects are described before each.
  void sample(std::int64_t at_ns, std::int64_t weight_ns, std::size_t number, std::size_t thread = 0,
              Activity activity = Activity::kRunning) {
    window_.code(capture::CodeId{0}, {"main", "app.py", 1, ""});
    window_.code(capture::CodeId{number}, {"leaf" + std::to_string(number), "app.py", 10, ""});
    const capture::SampleFrame frames[] = {{capture::CodeId{0}, {2, 1}}, {capture::CodeId{number}, {11, 1}}};
    capture::Sample sample;
    sample.time_ns = begin_ns_ + at_ns;
    sample.weight_ns = weight_ns;
    sample.activity = activity;
    sample.thread = capture::ThreadSerial{thread};
    sample.frames = frames;
    window_.sample(sample);
  }
  void flush(std::int64_t at_ns) {
    EXPECT_TRUE(window_.flush({begin_ns_ + at_ns, 0, {}}, capture::SampleSink::Ending::kOpen).ok());
  }
  [[nodiscard]] LiveView view(std::int64_t at_ns, std::int64_t length_ns) const {
    return window_.view(begin_ns_ + at_ns, length_ns);
  }

  LiveWindow window_;
  std::int64_t begin_ns_;
};

// The same with little memory.
class SmallLiveWindowTest : public LiveWindowTest {
 protected:
  SmallLiveWindowTest() : LiveWindowTest(std::size_t{64} << 10U) {}
};

std::string heaviest(const LiveView& view) {
  const std::vector<FlatRow> rows = flat(view.profile);
  return rows.empty() ? "" : std::string(view.profile.strings[view.profile.functions[rows[0].function].name]);
}

TEST_F(LiveWindowTest, ShowsTheLastSecondsOnly) {
  // GIVEN three seconds with a function each
  for (int i = 0; i < 3; ++i) sample((i + 1) * kSecond, 900 * kMillisecond, static_cast<std::size_t>(i) + 1);
  // THEN the last second is that of the last one
  EXPECT_EQ(heaviest(view(3 * kSecond, kSecond)), "leaf3");
  EXPECT_EQ(view(3 * kSecond, kSecond).profile.sampled_ns(), 900 * kMillisecond);
  EXPECT_EQ(view(3 * kSecond, 10 * kSecond).profile.sampled_ns(), 2700 * kMillisecond);
}

TEST_F(LiveWindowTest, IsNoLongerThanTheSessionIsOld) {
  sample(kSecond, kSecond, 1);
  const LiveView found = view(2 * kSecond, 10 * kSecond);
  EXPECT_EQ(found.profile.end_ns, 2 * kSecond);
  EXPECT_EQ(found.profile.samples.time_ns[0], kSecond);
}

TEST_F(LiveWindowTest, CutsAWaitThatBeganBefore) {
  sample(4 * kSecond, 3 * kSecond, 1, 1, Activity::kLock);
  EXPECT_EQ(view(5 * kSecond, 2 * kSecond).profile.sampled_ns(), kSecond);
}

TEST_F(LiveWindowTest, TellsThreadsThatAreThereFromThoseThatHaveEnded) {
  // GIVEN a thread that is there, and one that has ended
  sample(kSecond, kSecond, 1, 1, Activity::kIo);
  see_threads(kSecond);
  window_.thread({capture::ThreadSerial{0}, Tid{1}, "main", begin_ns_, begin_ns_ + 5 * kSecond, 0});
  // THEN the second is shown for its samples
  const LiveView found = view(5 * kSecond, 10 * kSecond);
  ASSERT_EQ(found.threads.size(), 2U);
  EXPECT_TRUE(found.threads[0].is_there);
  EXPECT_TRUE(found.profile.threads[0].is_main);
  EXPECT_FALSE(found.threads[1].is_there);
  EXPECT_EQ(found.threads[1].now, Activity::kIo);
  // and not when they are past
  EXPECT_EQ(view(5 * kSecond, kSecond).threads.size(), 1U);
}

TEST_F(LiveWindowTest, CountsWhoHeldTheLock) {
  for (int i = 1; i <= 4; ++i)
    window_.gil({begin_ns_ + i * kMillisecond, i != 4, i < 3 ? capture::ThreadSerial{1} : capture::ThreadSerial{}});
  see_threads(kSecond);
  const LiveView found = view(kSecond, kSecond);
  EXPECT_EQ(found.gil_looks, 4U);
  EXPECT_EQ(found.gil_held, 3U);
  EXPECT_EQ(found.threads[1].gil_looks, 2U);
}

TEST_F(LiveWindowTest, TakesNothingThatWasUsedWhileNobodyLooked) {
  sample(kSecond, kSecond, 1);
  window_.begin_anew(begin_ns_ + 60 * kSecond);
  // WHEN the first sample afterwards stands for the whole time
  sample(60 * kSecond + kMillisecond, 59 * kSecond, 2);
  sample(60 * kSecond + 9 * kMillisecond, 8 * kMillisecond, 3);
  // THEN it does not count
  EXPECT_EQ(view(61 * kSecond, 5 * kSecond).profile.sampled_ns(), 8 * kMillisecond);
}

TEST_F(SmallLiveWindowTest, KeepsWhatIsYoungWhenItsMemoryIsFull) {
  // GIVEN more functions than it has room for, a thousand a second
  std::size_t number = 1;
  const std::uint32_t before = window_.code_epoch();
  for (int i = 1; i <= 4000; ++i) {
    sample(i * kMillisecond, kMillisecond, number);
    // (Ids may be used again only when all code objects are described anew.)
    number = window_.wants_flush() ? 1 : number + 1;
    if (number == 1) flush(i * kMillisecond);
  }
  // THEN the tables began anew, and the last samples are what they were
  EXPECT_GT(window_.code_epoch(), before);
  const LiveView found = view(4 * kSecond, 10 * kMillisecond);
  EXPECT_EQ(found.profile.samples.size(), 10U);
  EXPECT_EQ(found.profile.sampled_ns(), 10 * kMillisecond);
  for (const StackId stack : found.profile.samples.stack) EXPECT_EQ(frames_of(found.profile.stacks, stack).size(), 2U);
}

}  // namespace
}  // namespace plimsoll::profile
