// capture/tick_golden.cc: the fast path, over and over, for tools/checks/golden.py to count its instructions.
//
//   tick_golden walk 1000     walks a stack of 20 frames 1000 times
//   tick_golden tick 1000     a whole tick 1000 times: clocks, ring, walk, filter
#include <array>
#include <cstdlib>
#include <deque>
#include <string_view>

#include "capture/cpu_sampler.h"
#include "capture/testing.h"
#include "cpython/walk.h"
#include "memory/local.h"

namespace plimsoll::capture::testing {
namespace {

constexpr std::size_t kFrames = 20;

// A thread that is 20 calls deep.
class DeepThread {
 public:
  DeepThread() {
    const FakeFrame* caller = nullptr;
    for (std::size_t i = 0; i < kFrames; ++i) {
      functions_.emplace_back("function");
      frames_[i] = functions_.back().frame(2 * i, caller);
      caller = &frames_[i];
    }
    state_.current_frame.store(caller);
  }
  [[nodiscard]] Address state() const { return address_of(&state_); }

 private:
  std::deque<FakeFunction> functions_;
  std::array<FakeFrame, kFrames> frames_{};
  FakeThreadState state_;
};

Interpreter::ThreadState deep_thread() {
  static const DeepThread thread;
  return {thread.state(), true};
}

bool walk(long count) {
  const cpython::Layout layout = fake_layout();
  std::array<cpython::PyFrame, 2 * kFrames> frames;
  for (; count > 0; --count) {
    Address frame{};
    if (!cpython::current_frame(memory::LocalReader{}, layout, deep_thread().address, frame)) return false;
    const cpython::Walk walk =
        cpython::walk_frames(memory::LocalReader{}, layout, address_of(&kFakeCodeType), frame, frames);
    if (walk.stop != cpython::WalkStop::kComplete || walk.count != kFrames) return false;
  }
  return true;
}

bool tick(long count) {
  constexpr std::size_t kRoomForAll = 1U << 26U;  // nothing drains this ring
  SeenFilter seen;
  Result<SampleRing> ring = SampleRing::create(kRoomForAll);
  if (!ring.ok()) return false;
  // As rarely as possible, so that ticks of the clock do not count among ours.
  const TickSettings settings{.rate_hz = 1, .clock = os::TickClock::kThreadCpu};
  const Interpreter interpreter{fake_layout(), address_of(&kFakeCodeType), Address{}, &deep_thread};
  Result<std::unique_ptr<CpuSampler>> sampler = CpuSampler::create(settings, interpreter, ring.value(), seen);
  if (!sampler.ok()) return false;
  sampler.value()->start({});
  siginfo_t info{};
  info.si_code = SI_TIMER;
  info.si_value.sival_int = 0;  // this thread is the only one, so it has the first slot
  const std::size_t before = ring.value().backlog();
  for (long done = 0; done < count; ++done) sampler.value()->tick(info);
  const std::size_t least = static_cast<std::size_t>(count) * (sizeof(RawSample) + kFrames * sizeof(cpython::PyFrame));
  const bool all_recorded = ring.value().backlog() - before >= least;
  sampler.value()->stop();
  return all_recorded;
}

}  // namespace
}  // namespace plimsoll::capture::testing

int main(int count, char** arguments) {
  if (count != 3) return EXIT_FAILURE;
  const long repeats = std::atol(arguments[2]);
  const bool is_tick = std::string_view(arguments[1]) == "tick";
  const bool worked = is_tick ? plimsoll::capture::testing::tick(repeats) : plimsoll::capture::testing::walk(repeats);
  return worked ? EXIT_SUCCESS : EXIT_FAILURE;
}
