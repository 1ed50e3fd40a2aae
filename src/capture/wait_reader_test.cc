// capture/wait_reader_test.cc: what threads of a test wait for, and on which stack.
#include "capture/wait_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <new>
#include <semaphore>
#include <thread>

#include "capture/reader_thread.h"
#include "capture/sampler_testing.h"

namespace plimsoll::capture {
namespace {

using testing::burn;
using testing::FakeFrame;
using testing::FakeFunction;
using testing::kMillisecond;
using testing::run_registered;
using testing::RunsPython;
using testing::Sampling;

void nap(std::int64_t ns) {
  const timespec time{0, ns};
  ::nanosleep(&time, nullptr);
}

// A sampler and a reader at 1 kHz, and what they put into the ring.
class WaitReaderTest : public ::testing::Test {
 protected:
  WaitReaderTest() {
    Result<std::unique_ptr<ReaderThread>> reader = ReaderThread::start(
        {.waits = true}, Sampling::interpreter(), *sampling.operator->(), sampling.ring(), sampling.seen(), 64);
    EXPECT_TRUE(reader.ok());
    reader_ = reader.take();
    sampling->start({os::current_tid(), reader_->tid()});
  }
  void stop() {
    reader_->stop();
    sampling->stop();
  }
  // Nanoseconds of the thread's records of an activity.
  std::int64_t waited(Activity activity, const std::string& thread = "thread") {
    std::int64_t sum = 0;
    for (const auto& taken : sampling.samples_of(thread))
      if (taken.raw.activity == activity && taken.raw.stop == cpython::WalkStop::kComplete) sum += taken.raw.weight_ns;
    return sum;
  }
  // `took_ns` is by the clock of the thread, which may get its CPU long after the `asked_ns`.
  void expect_sleep(std::int64_t asked_ns, std::int64_t took_ns) {
    // On a busy machine the reader comes late to what has begun.
    EXPECT_GE(waited(Activity::kSleep), asked_ns / 5);
    EXPECT_LE(waited(Activity::kSleep), took_ns + 40 * kMillisecond);
  }

  Sampling sampling{TickSettings{}};
  const FakeFunction main_{"main"};
  const FakeFunction wait_{"wait"};
  const FakeFrame main_frame_ = main_.frame(4);
  const FakeFrame wait_frame_ = wait_.frame(8, &main_frame_);
  std::unique_ptr<ReaderThread> reader_;
};

TEST_F(WaitReaderTest, ASleepIsOnItsStackForAsLongAsItTakes) {
  std::int64_t took_ns = 0;
  run_registered(sampling, "thread", [&] {
    const RunsPython python(&wait_frame_);
    sampling->thread_started("thread");  // as the binding does, with a thread state
    const std::int64_t began_ns = monotonic_ns();
    nap(150 * kMillisecond);
    took_ns = monotonic_ns() - began_ns;
  });
  stop();
  expect_sleep(150 * kMillisecond, took_ns);
  // One record has the stack, the others say that it is the same.
  std::size_t with_stack = 0;
  for (const auto& taken : sampling.samples_of("thread")) {
    if (taken.raw.activity != Activity::kSleep || taken.raw.stack != RawSample::Stack::kHere) continue;
    ++with_stack;
    ASSERT_EQ(taken.frames.size(), 2U);
    EXPECT_EQ(taken.frames[0].code, wait_.address());
    EXPECT_EQ(taken.frames[1].code, main_.address());
  }
  EXPECT_EQ(with_stack, 1U);
}

TEST_F(WaitReaderTest, LocksAndInputAreToldApart) {
  std::binary_semaphore semaphore{0};
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  // GIVEN a thread that waits for a lock and then for input, each until the reader has seen it for a while
  std::int64_t lock_ns = 0, input_ns = 0;
  const auto wait_until_seen = [&](Activity activity) {
    const std::int64_t begin = monotonic_ns();
    while (waited(activity) < 50 * kMillisecond) nap(kMillisecond);
    return monotonic_ns() - begin;
  };
  std::thread releaser([&] {
    lock_ns = wait_until_seen(Activity::kLock);
    semaphore.release();
    input_ns = wait_until_seen(Activity::kIo);
    EXPECT_EQ(::write(ends[1], "x", 1), 1);
  });
  run_registered(sampling, "thread", [&] {
    const RunsPython python(&wait_frame_);
    sampling->thread_started("thread");
    semaphore.acquire();
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
  });
  releaser.join();
  stop();
  // THEN neither is taken for the other, nor for longer than it was
  EXPECT_LE(waited(Activity::kLock), lock_ns + 40 * kMillisecond);
  EXPECT_LE(waited(Activity::kIo), input_ns + 40 * kMillisecond);
  EXPECT_EQ(waited(Activity::kSleep), 0);
  for (const int end : ends) ::close(end);
}

TEST_F(WaitReaderTest, AThreadThatRunsDoesNotWait) {
  run_registered(sampling, "thread", [&] {
    const RunsPython python(&wait_frame_);
    sampling->thread_started("thread");
    burn(100 * kMillisecond);
  });
  stop();
  for (const Activity activity : {Activity::kSleep, Activity::kLock, Activity::kIo, Activity::kOther})
    EXPECT_LE(waited(activity), 10 * kMillisecond) << text(activity);
}

TEST_F(WaitReaderTest, StacksNeverMix) {
  // GIVEN two callers in turn, and short waits
  const FakeFunction other{"other"};
  const FakeFunction leaf{"leaf"};
  const FakeFrame other_frame = other.frame(4);
  const FakeFrame leaf_frame = leaf.frame(8, &other_frame);
  std::size_t stacks = 0;
  const auto is_of_wait = [](const Sampling::Taken& taken) {
    return taken.frames.size() == 2 && taken.raw.activity != Activity::kRunning;
  };
  run_registered(sampling, "thread", [&] {
    RunsPython python(&wait_frame_);
    sampling->thread_started("thread");
    for (int i = 0; i < 600 || stacks <= 50; ++i) {
      python.go_to(i % 2 == 0 ? &wait_frame_ : &leaf_frame);
      nap(kMillisecond / (1 + i % 7));
      if (i % 100 != 99) continue;
      const auto found = sampling.samples_of("thread");
      stacks = static_cast<std::size_t>(std::count_if(found.begin(), found.end(), is_of_wait));
    }
  });
  stop();
  // THEN each stack is of one of them
  for (const auto& taken : sampling.samples_of("thread")) {
    if (!is_of_wait(taken)) continue;
    EXPECT_EQ(taken.frames[0].code == wait_.address(), taken.frames[1].code == main_.address());
  }
}

TEST_F(WaitReaderTest, ThreadsOfNativeCodeAreNotLookedAt) {
  run_registered(sampling, "thread", [] { nap(50 * kMillisecond); });
  stop();
  EXPECT_EQ(waited(Activity::kSleep), 0);
}

TEST_F(WaitReaderTest, AThreadStateThatItsNeighboursDoNotKnowIsGone) {
  // GIVEN a thread state that was taken out of the list, as one that has been freed
  static testing::FakeThreadState neighbour;
  run_registered(sampling, "thread", [&] {
    const RunsPython python(&wait_frame_);
    testing::current_thread_state->next = &neighbour;
    sampling->thread_started("thread");
    nap(50 * kMillisecond);
  });
  stop();
  EXPECT_EQ(waited(Activity::kSleep), 0);
}

// Lets the test say when there is a look at the threads.
TEST(WaitReader, AWaitThatTheRingHadNoRoomForIsNotToldOfOnTheStackOfTheNext) {
  Sampling sampling(TickSettings{}, std::size_t{64} << 10U);
  WaitReader reader(Sampling::interpreter(), *sampling.operator->(), sampling.ring(), sampling.seen(), 64);
  sampling->start({os::current_tid()});
  const auto look = [&] {
    sampling->for_each_thread([&](ThreadSlot& slot) { reader.look_at(slot); });
    reader.end_round();
  };
  // What came with a wait of `function` on top.
  const auto waited_in = [&](const FakeFunction& function) {
    std::int64_t sum = -1;
    const auto taken = sampling.samples_of("thread");
    const auto first = std::find_if(taken.begin(), taken.end(), [&](const Sampling::Taken& at) {
      return at.raw.activity == Activity::kLock && !at.frames.empty() && at.frames[0].code == function.address();
    });
    for (auto at = first; at != taken.end(); ++at) sum += at->raw.weight_ns;
    return sum;
  };
  const FakeFunction first{"first"}, second{"second"};
  const FakeFrame first_frame = first.frame(4), second_frame = second.frame(4);
  std::binary_semaphore first_wait{0}, second_wait{0};
  std::thread thread([&] {
    run_registered(sampling, "thread", [&] {
      RunsPython python(&first_frame);
      sampling->thread_started("thread");
      first_wait.acquire();
      python.go_to(&second_frame);
      burn(kMillisecond);
      second_wait.acquire();
    });
  });
  // GIVEN a wait of which a part is not in the ring yet
  for (; waited_in(first) < 0; nap(kMillisecond)) look();
  nap(50 * kMillisecond);
  look();
  // WHEN the ring is full as it ends
  for (auto room = sampling.ring().reserve(sizeof(RawSample)); !room.bytes.empty();
       room = sampling.ring().reserve(sizeof(RawSample))) {
    new (room.bytes.data()) RawSample;
    sampling.ring().commit(room, sizeof(RawSample), sizeof(RawSample));
  }
  const std::int64_t begin = monotonic_ns();
  first_wait.release();
  for (; sampling.dropped(DropReason::kRingFull).count < 2; nap(kMillisecond)) look();
  // THEN that part is lost, and counted, and not the next wait's
  for (; waited_in(second) < 0; nap(kMillisecond)) look();
  reader.finish();
  EXPECT_LE(waited_in(second), monotonic_ns() - begin);
  second_wait.release();
  thread.join();
  sampling->stop();
}

TEST_F(WaitReaderTest, APauseIsNotAccountedFor) {
  std::int64_t took_ns = 0;  // but for the pause
  const auto timed_nap = [&] {
    const std::int64_t began_ns = monotonic_ns();
    nap(50 * kMillisecond);
    took_ns += monotonic_ns() - began_ns;
  };
  run_registered(sampling, "thread", [&] {
    const RunsPython python(&wait_frame_);
    sampling->thread_started("thread");
    timed_nap();
    sampling->pause();
    nap(100 * kMillisecond);
    sampling->resume();
    timed_nap();
  });
  stop();
  expect_sleep(100 * kMillisecond, took_ns);
}

TEST_F(WaitReaderTest, ManyShortPausesTakeNothingFromTheWaitsBetweenThem) {
  // GIVEN a thread that sleeps, and pauses and resumes for less than the reader's next look
  constexpr int kPauses = 20;
  constexpr std::int64_t kNap = 4 * kMillisecond, kAsleep = kPauses * kNap;
  std::int64_t outside_ns = 0;  // of all pauses: where others want the CPU, the thread waits for that, too
  run_registered(sampling, "thread", [&] {
    const RunsPython python(&wait_frame_);
    std::int64_t resumed_ns = monotonic_ns();
    sampling->thread_started("thread");
    reader_->look_at_waits();
    for (int i = 0; i < kPauses; ++i) {
      nap(kNap);
      reader_->look_at_waits();
      sampling->pause();
      reader_->look_at_waits();
      outside_ns += monotonic_ns() - resumed_ns;
      nap(kNap);
      resumed_ns = monotonic_ns();
      sampling->resume();
      reader_->look_at_waits();
    }
    outside_ns += monotonic_ns() - resumed_ns;
  });
  stop();
  // THEN it has all of its sleep outside of the pauses, and nothing of them
  const std::int64_t waited_ns = waited(Activity::kSleep) + waited(Activity::kReady);
  EXPECT_GE(waited_ns, kAsleep - kAsleep / 5);
  EXPECT_LE(waited_ns, outside_ns + kAsleep / 5);
}

}  // namespace
}  // namespace plimsoll::capture
