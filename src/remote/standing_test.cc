// remote/standing_test.cc: threads that count as fast as they can, and stand still all the same.
#include "remote/standing.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <thread>

#include "base/clock.h"

namespace plimsoll::remote {
namespace {

// A thread of this process that does nothing but count.
class Counting {
 public:
  Counting() {
    while (tid_.load() == 0) std::this_thread::yield();
  }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;
  ~Counting() { ends_ = true; }

  [[nodiscard]] os::ThreadProbe probe() const {
    return {Tid{tid_.load()}, os::ThreadProbe::Keep::kOpen, static_cast<std::int32_t>(::getpid())};
  }
  [[nodiscard]] std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int> tid_{0};
  std::atomic<bool> ends_{false};
  std::atomic<std::uint64_t> count_{0};
  std::jthread thread_{[this] {
    tid_ = static_cast<int>(os::current_tid());
    while (!ends_.load(std::memory_order_relaxed)) count_.fetch_add(1, std::memory_order_relaxed);
  }};
};

void use_cpu(std::int64_t ns) {
  const std::int64_t end_ns = monotonic_ns() + ns;
  while (monotonic_ns() < end_ns) continue;
}

TEST(SharedCpu, AThreadThatRunsStandsStillBesideUs) {
  const Counting thread;
  const os::ThreadProbe probe = thread.probe();
  SharedCpu shared;
  int proven = 0;
  constexpr int kLooks = 2000;
  for (int i = 0; i < kLooks; ++i) {
    shared.begin_look();
    // WHEN we wake on its CPU, and take our time there
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    const std::optional<Standing> standing = shared.stand_beside(probe);
    if (!standing) continue;
    const std::uint64_t before = thread.count();
    use_cpu(5'000);
    const std::uint64_t after = thread.count();
    if (!standing->goes_on()) continue;
    // THEN it has not counted on, or we know that it has
    ASSERT_EQ(before, after) << "look " << i;
    ++proven;
  }
  EXPECT_GT(proven, kLooks / 10);
  EXPECT_GT(thread.count(), 0U);
}

TEST(SharedCpu, LetsAThreadRunOnToAMomentOfItsOwnWhereItHasComeFromAnotherCpu) {
  const Counting thread;
  const os::ThreadProbe probe = thread.probe();
  // GIVEN that we sleep until the thread has counted on
  int rests = 0;
  std::set<std::int64_t> times;
  const auto until_it_counts = [&](std::int64_t ns) {
    ++rests;
    times.insert(ns);
    for (const std::uint64_t before = thread.count(); thread.count() == before;) std::this_thread::yield();
  };
  constexpr int kTimes = 10;
  for (int i = 0; i < kTimes; ++i) {
    // WHEN we come to its CPU
    SharedCpu shared(until_it_counts);
    while (!shared.stand_beside(probe)) shared.begin_look();
    // THEN we have slept there before it is said to stand still
    EXPECT_GT(rests, i);
  }
  // AND never for the same time
  EXPECT_GT(times.size(), 1U);
}

TEST(SharedCpu, GivesTheThreadBackWhereItMayRun) {
  const auto allowed = [] {
    cpu_set_t set{};
    ::sched_getaffinity(0, sizeof set, &set);
    return CPU_COUNT(&set);
  };
  const int before = allowed();
  {
    const Counting thread;
    SharedCpu shared;
    const os::ThreadProbe probe = thread.probe();
    while (!shared.stand_beside(probe)) shared.begin_look();
    EXPECT_EQ(allowed(), 1);
  }
  EXPECT_EQ(allowed(), before);
}

TEST(SharedCpu, HasNoPlaceBesideAThreadThatWaitsOrIsGone) {
  SharedCpu shared;
  std::atomic<int> tid{0};
  std::atomic<bool> ends{false};
  std::optional<os::ThreadProbe> probe;
  {
    const std::jthread waiting([&] {
      tid = static_cast<int>(os::current_tid());
      tid.notify_one();
      ends.wait(false);
    });
    tid.wait(0);
    probe.emplace(Tid{tid.load()}, os::ThreadProbe::Keep::kOpen, static_cast<std::int32_t>(::getpid()));
    // (On its way to wait it may stand still for a moment, too.)
    std::optional<Standing> still;
    while (probe->wait().kind != os::KernelWait::Kind::kFutex || !(still = standing_still(*probe)) || !still->goes_on())
      std::this_thread::yield();
    EXPECT_FALSE(shared.stand_beside(*probe));
    EXPECT_TRUE(still->goes_on());
    ends = true;
    ends.notify_one();
  }
  EXPECT_FALSE(shared.stand_beside(*probe));
  EXPECT_FALSE(standing_still(*probe));
}

TEST(Place, IsReadFromTheKernelsLine) {
  // GIVEN a thread with a name that has everything in it
  const std::string start = "12 (a) R (b) S 1 12 12 0 -1 4194304 100 0 0 0 5 6 0 0 20 0 3 0 900 1000 200 ";
  const std::string middle = "18446744073709551615 1 1 0 0 0 0 0 16781312 2 0 0 0 17 ";
  const auto place = os::parse_place(start + middle + "5 0 0 0 0 0\n");
  ASSERT_TRUE(place);
  EXPECT_FALSE(place->is_ready);
  EXPECT_FALSE(place->is_realtime);
  EXPECT_EQ(place->cpu, 5);
  // and one that is scheduled in real time
  const auto realtime = os::parse_place("12 (b) R 1 12 12 0 -1 4194304 100 0 0 0 5 6 0 0 20 0 3 0 900 1000 200 " +
                                        middle + "63 50 1 0 0 0\n");
  ASSERT_TRUE(realtime);
  EXPECT_TRUE(realtime->is_ready);
  EXPECT_TRUE(realtime->is_realtime);
  EXPECT_EQ(realtime->cpu, 63);
  // THEN what is cut or damaged is none
  for (const char* line : {"", "12 (a", "12 (a) ", "12 (a) R 1 2 3", "12 (a) R 1 2 3 4 5 6 7 8 9"})
    EXPECT_FALSE(os::parse_place(line)) << line;
}

TEST(CpuSeat, StaysWhereItIsIfItMayNotGo) {
  os::CpuSeat seat;
  EXPECT_FALSE(seat.move_to(-1));
  EXPECT_FALSE(seat.move_to(8191));
  EXPECT_FALSE(seat.move_to(1 << 30));
  EXPECT_EQ(seat.cpu(), -1);
}

}  // namespace
}  // namespace plimsoll::remote
