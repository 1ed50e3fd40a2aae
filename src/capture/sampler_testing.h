// capture/sampler_testing.h: a CpuSampler at work on threads of a test. No product code may include it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/sample_ring.h"
#include "capture/cpu_sampler.h"
#include "capture/testing.h"

namespace plimsoll::capture::testing {

inline constexpr std::int64_t kMillisecond = 1'000'000;

#ifdef __SANITIZE_THREAD__
// It has a thread of its own, and a thread that is made has begun when whoever makes it goes on.
inline constexpr bool kHasThreadSanitizer = true;
// ThreadSanitizer runs handlers later, where they cannot hurt it, but that of SIGTRAP at once: in the middle of what it
// does itself, which then waits for a lock of its own, or tells of races that are none. Where the program has that
// signal ticks do not come as traps.
inline const bool kTrapsAreTaken = ::signal(SIGTRAP, SIG_IGN) != SIG_ERR;
#else
inline constexpr bool kHasThreadSanitizer = false;
#endif

// Uses CPU time of the calling thread, in user and in kernel mode. Not bounded by the time that passes.
inline void burn(std::int64_t cpu_ns) {
  const std::int64_t end = thread_cpu_ns() + cpu_ns;
  while (thread_cpu_ns() < end)
    for (int i = 0; i < 200; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
}

// Uses CPU time of the calling thread until something has come: ticks of the kernel's clocks of threads come when a
// scheduler's tick meets the thread on a CPU, which on a busy machine no amount of time is sure to be enough for.
template <typename HasCome>
void burn_until(HasCome has_come) {
  do burn(kMillisecond);
  while (!has_come());
}

// The thread state of each thread of a test; null: a thread of native code.
inline constinit thread_local FakeThreadState* current_thread_state = nullptr;
inline Interpreter::ThreadState fake_thread_state() {
  const Address address = address_of(current_thread_state);
  return {address, !is_null(address)};
}

// The calling thread has a thread state, for the scope.
class RunsPython {
 public:
  explicit RunsPython(const FakeFrame* frame) {
    go_to(frame);
    current_thread_state = &state_;
  }
  RunsPython(const RunsPython&) = delete;
  RunsPython& operator=(const RunsPython&) = delete;
  ~RunsPython() { current_thread_state = nullptr; }
  void go_to(const FakeFrame* frame) { state_.current_frame.store(frame); }

 private:
  FakeThreadState state_;
};

// A sampler with its ring, what was drained from it, and what is known of the threads.
class Sampling {
 public:
  // A record of the ring.
  struct Taken {
    RawSample raw;
    std::vector<cpython::PyFrame> frames;
  };

  explicit Sampling(const TickSettings& settings, std::size_t ring_bytes = std::size_t{16} << 20U)
      : ring_(SampleRing::create(ring_bytes).take()),
        sampler_(CpuSampler::create(settings, interpreter(), ring_, *seen_)) {}

  static Interpreter interpreter() {
    Interpreter interpreter{fake_layout(), address_of(&kFakeCodeType), Address{}, &fake_thread_state};
    interpreter.attached_state_of_caller = [] { return fake_thread_state().address; };
    return interpreter;
  }
  SampleRing& ring() { return ring_; }

  [[nodiscard]] const Result<std::unique_ptr<CpuSampler>>& created() const { return sampler_; }
  CpuSampler* operator->() { return sampler_.value().get(); }
  [[nodiscard]] SeenFilter& seen() const { return *seen_; }
  [[nodiscard]] std::int64_t period_ns() { return static_cast<std::int64_t>(1e9 / (*this)->rate_hz()); }

  // All samples so far.
  const std::vector<Taken>& samples() {
    ring_.drain([this](std::span<const std::byte> record) {
      Taken taken;
      std::memcpy(&taken.raw, record.data(), sizeof taken.raw);
      const std::span own{reinterpret_cast<const cpython::PyFrame*>(record.data() + sizeof taken.raw),
                          (record.size() - sizeof taken.raw) / sizeof(cpython::PyFrame)};
      std::span<const cpython::PyFrame> whole = own;
      const bool is_complete =
          taken.raw.stack != RawSample::Stack::kOnLast || last_stacks_.complete(taken.raw, own, whole);
      ASSERT_TRUE(is_complete);
      taken.frames.assign(whole.begin(), whole.end());
      samples_.push_back(std::move(taken));
    });
    return samples_;
  }
  std::vector<Taken> samples_of(const std::string& thread) {
    std::vector<Taken> found;
    for (const Taken& taken : samples())
      if (threads()[taken.raw.thread.index()].name == thread) found.push_back(taken);
    return found;
  }

  // Whether a thread was sampled that had a thread state.
  bool has_python() {
    const std::vector<Taken>& all = samples();
    return std::any_of(all.begin(), all.end(),
                       [](const Taken& taken) { return taken.raw.python != RawSample::Python::kNoState; });
  }

  // What is known of each thread, by serial.
  std::map<std::uint32_t, ThreadInfo>& threads() {
    for (ThreadInfo& info : (*this)->take_thread_changes()) threads_[info.serial.index()] = info;
    return threads_;
  }
  // CPU time of all threads while they were sampled, by their own clocks.
  std::int64_t threads_cpu_ns() {
    std::int64_t sum = 0;
    for (const auto& [serial, info] : threads()) sum += info.cpu_ns;
    return sum;
  }
  std::int64_t sampled_cpu_ns() {
    std::int64_t sum = 0;
    for (const Taken& taken : samples())
      if (taken.raw.stop == cpython::WalkStop::kComplete || taken.raw.stop == cpython::WalkStop::kTruncated)
        sum += taken.raw.weight_ns;
    return sum;
  }
  DropTotal dropped(DropReason reason) { return (*this)->drops()[static_cast<std::size_t>(reason)]; }
  std::int64_t dropped_cpu_ns() {
    std::int64_t sum = 0;
    for (const DropTotal& total : (*this)->drops()) sum += total.cpu_ns;
    return sum;
  }

  // The law: what was sampled and what was dropped is what was used, give or take some periods.
  void expect_all_accounted_for(std::int64_t periods = 2) {
    EXPECT_NEAR(static_cast<double>(sampled_cpu_ns() + dropped_cpu_ns()), static_cast<double>(threads_cpu_ns()),
                static_cast<double>(periods * period_ns()));
  }
  // The same by clocks that the test itself has read, give or take two periods. `most_ns` has what the thread has used
  // that started and stopped the recording: the kernel's first perf event can take it milliseconds.
  void expect_told_of_between(std::int64_t least_ns, std::int64_t most_ns) {
    const std::int64_t told_ns = sampled_cpu_ns() + dropped_cpu_ns();
    EXPECT_GE(told_ns, least_ns - 2 * period_ns());
    EXPECT_LE(told_ns, most_ns + 2 * period_ns());
  }

 private:
  SampleRing ring_;
  std::unique_ptr<SeenFilter> seen_ = std::make_unique<SeenFilter>();
  Result<std::unique_ptr<CpuSampler>> sampler_;
  LastStacks last_stacks_;
  std::vector<Taken> samples_;
  std::map<std::uint32_t, ThreadInfo> threads_;
};

// What a thread has used, by its own clock: at least what its body did, at most that and how it began and took leave.
struct ThreadUsed {
  std::int64_t least_ns = 0;
  std::int64_t most_ns = 0;
};

// Runs `body` on a thread that registers itself and takes leave, as the Python binding makes threads do.
inline ThreadUsed run_registered(Sampling& sampling, const std::string& name, const std::function<void()>& body) {
  ThreadUsed used;
  std::thread thread([&] {
    sampling->thread_started(name);
    const std::int64_t before = thread_cpu_ns();
    body();
    used.least_ns = thread_cpu_ns() - before;
    sampling->thread_ending(name);
    used.most_ns = thread_cpu_ns();
  });
  thread.join();
  return used;
}

// What holds with every clock that the kernel allows here.
class WithEachClock : public ::testing::TestWithParam<os::TickClock> {
 protected:
  static TickSettings at(double rate_hz, std::size_t max_depth = 64) { return {rate_hz, GetParam(), max_depth}; }
  void SetUp() override {
    const Sampling trial(at(1000));
    if (!trial.created().ok()) GTEST_SKIP() << trial.created().error().message;
  }
};
inline const auto kEachClock =
    ::testing::Values(os::TickClock::kPerf, os::TickClock::kMonotonic, os::TickClock::kThreadCpu);
inline std::string clock_name(const ::testing::TestParamInfo<os::TickClock>& tested) {
  constexpr const char* kNames[] = {"Perf", "Monotonic", "ThreadCpu"};
  return kNames[static_cast<std::size_t>(tested.param)];
}

}  // namespace plimsoll::capture::testing
