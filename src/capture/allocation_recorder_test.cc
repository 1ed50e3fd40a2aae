// capture/allocation_recorder_test.cc: what becomes of allocations that the drain thread is late for.
#include "capture/allocation_recorder.h"

#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <thread>

#include "capture/sampler_testing.h"

namespace plimsoll::capture {
namespace {

using testing::Sampling;

constexpr std::size_t kSmallRing = std::size_t{64} << 10U;  // for some hundreds of them
constexpr std::size_t kMany = 5000;

// A recorder with a small ring; the test says who empties it, if anybody does.
class Recording {
 public:
  Recording() : sampling_(TickSettings{}, kSmallRing) { sampling_->start({}); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() { sampling_->stop(); }

  AllocationRecorder& recorder() { return recorder_; }
  // No tick meets what a test has drawn: on a slow machine one may come in a moment.
  void pause_ticks() { sampling_->pause(); }
  DrainGate& gate() { return gate_; }
  bool allocate() { return recorder_.allocated({.number = recorder_.next_number(), .size = 100, .chance_bytes = 100}); }
  void release(std::uint64_t number) { recorder_.released({.number = number, .is_freed = 1}); }

  // A thread that empties the ring when it is told that there is need, and only then; how many records of
  // the recorder were met in all.
  template <typename Work>
  std::size_t drained_during(Work work) {
    std::atomic<bool> is_done{false};
    std::jthread drain([&] {
      while (!is_done.load()) {
        if (!gate_.bell.wait_for(1'000'000)) continue;
        const std::lock_guard working(gate_.work);
        drain_now();
      }
    });
    work();
    is_done.store(true);
    drain.join();
    drain_now();
    return records_;
  }
  template <typename Visit>
  void drain_now(Visit visit) {
    sampling_.ring().drain([&](std::span<const std::byte> record) {
      RawSample raw;
      std::memcpy(&raw, record.data(), sizeof raw);
      visit(raw);
      if (raw.kind != RawSample::Kind::kTick) ++records_;
    });
  }
  void drain_now() {
    drain_now([](const RawSample&) {});
  }
  std::uint64_t dropped(DropReason reason) { return sampling_.dropped(reason).count; }
  std::uint64_t lost() { return dropped(DropReason::kAllocation); }

 private:
  Sampling sampling_;
  DrainGate gate_;
  std::size_t records_ = 0;
  AllocationRecorder recorder_{
      Sampling::interpreter(), *sampling_.operator->(), sampling_.ring(), sampling_.seen(), 64, nullptr, gate_};
};

TEST(AllocationRecorder, WaitsForRoomRatherThanLoseAnAllocation) {
  Recording recording;
  // WHEN far more is allocated than the ring has room for
  const std::size_t records = recording.drained_during([&] {
    for (std::size_t i = 0; i < kMany; ++i) EXPECT_TRUE(recording.allocate());
  });
  // THEN all of it arrives
  EXPECT_EQ(records, kMany);
  EXPECT_EQ(recording.lost(), 0U);
}

TEST(AllocationRecorder, ABlockWhoseStackIsNotProvenIsThereWithoutOne) {
  Recording recording;
  recording.pause_ticks();
  // GIVEN a thread in a function whose caller is none
  const testing::FakeFunction outer("outer"), inner("inner");
  testing::FakeFrame caller = outer.frame(4);
  caller.code = reinterpret_cast<decltype(caller.code)>(&caller);
  const testing::FakeFrame callee = inner.frame(8, &caller);
  const testing::RunsPython thread(&callee);
  // WHEN it allocates
  EXPECT_TRUE(recording.allocate());
  // THEN that is there, without a frame, and it is counted that there is none
  std::size_t allocations = 0;
  recording.drain_now([&](const RawSample& raw) {
    if (raw.kind != RawSample::Kind::kAllocation) return;
    ++allocations;
    EXPECT_EQ(raw.stop, cpython::WalkStop::kComplete);
    EXPECT_EQ(raw.frame_count, 0U);
  });
  EXPECT_EQ(allocations, 1U);
  EXPECT_EQ(recording.dropped(reason_of(cpython::WalkStop::kNotCode)), 1U);
  EXPECT_EQ(recording.lost(), 0U);
}

TEST(AllocationRecorder, WaitsForRoomThoughTheThreadKeepsTheDrainOut) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not see pthread_mutex_clocklock (LLVM issue 62623): an unlock has no lock then";
#endif
  Recording recording;
  // GIVEN a thread that is about to fork
  recording.gate().keep_out();
  // WHEN it allocates far more than the ring has room for
  const std::size_t records = recording.drained_during([&] {
    for (std::size_t i = 0; i < kMany; ++i) EXPECT_TRUE(recording.allocate());
    // THEN it keeps the drain out again after each wait
    EXPECT_FALSE(std::async(std::launch::async, [&] { return recording.gate().work.try_lock(); }).get());
    recording.gate().let_in();
  });
  // AND all of it arrives
  EXPECT_EQ(records, kMany);
  EXPECT_EQ(recording.lost(), 0U);
}

TEST(AllocationRecorder, DoesNotWaitAgainForOneThatIsStuck) {
  Recording recording;
  // GIVEN nobody who empties the ring
  std::size_t taken = 0;
  while (recording.allocate()) ++taken;
  // WHEN allocations go on THEN they are lost, and counted, without a wait for each
  for (std::size_t i = 0; i < kMany; ++i) EXPECT_FALSE(recording.allocate());
  EXPECT_EQ(recording.lost(), kMany + 1);
  // AND when there is room again, none is
  recording.drain_now();
  EXPECT_TRUE(recording.allocate());
  EXPECT_EQ(recording.drained_during([] {}), taken + 1);
}

TEST(AllocationRecorder, TellsAtTheEndOfAllFreesThatHadNoRoom) {
  Recording recording;
  // GIVEN frees of which the ring has room for some
  for (std::size_t i = 0; i < kMany; ++i) recording.release(i);
  // WHEN the recording ends
  const std::size_t records = recording.drained_during([&] { recording.recorder().flush_releases(); });
  // THEN all are there
  EXPECT_EQ(records, kMany);
}

TEST(AllocationRecorder, TellsOfThemWhenTheDrainThreadEndsTheRecording) {
  Recording recording;
  // GIVEN frees of which the ring has room for some
  for (std::size_t i = 0; i < kMany; ++i) recording.release(i);
  // WHEN the recording ends by itself
  recording.recorder().close();
  recording.release(kMany);  // too late
  while (recording.recorder().put_rest()) recording.drain_now();
  // THEN all that were before are there
  EXPECT_EQ(recording.drained_during([] {}), kMany);
}

}  // namespace
}  // namespace plimsoll::capture
