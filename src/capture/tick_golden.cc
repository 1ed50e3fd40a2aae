// capture/tick_golden.cc: the fast path, over and over, for tools/checks/golden.py to count its instructions.
//
//   tick_golden walk 1000     walks a stack of 20 frames 1000 times
//   tick_golden tick 1000     a whole tick 1000 times: clocks, ring, walk, filter
//   tick_golden tasks 1000    the same in the step of an asyncio task that two others await
#include <array>
#include <cstdlib>
#include <deque>
#include <string_view>

#include "capture/cpu_sampler.h"
#include "capture/tasks_testing.h"
#include "cpython/walk.h"
#include "memory/local.h"

namespace plimsoll::capture::testing {
namespace {

constexpr std::size_t kFrames = 20;

// A thread that is 20 calls deep, and whose innermost function is now here, now there.
class DeepThread {
 public:
  DeepThread() {
    const FakeFrame* caller = nullptr;
    for (std::size_t i = 0; i < kFrames; ++i) {
      functions_.emplace_back("function");
      frames_[i] = functions_.back().frame(2 * i, caller);
      caller = &frames_[i];
    }
    elsewhere_ = functions_.back().frame(0, &frames_[kFrames - 2]);
    go_on();
  }
  [[nodiscard]] Address state() const { return address_of(&state_); }
  void go_on() {
    is_elsewhere_ = !is_elsewhere_;
    state_.current_frame.store(is_elsewhere_ ? &elsewhere_ : &frames_.back());
  }

 private:
  std::deque<FakeFunction> functions_;
  std::array<FakeFrame, kFrames> frames_{};
  FakeFrame elsewhere_{};
  bool is_elsewhere_ = true;
  FakeThreadState state_;
};

Interpreter::ThreadState deep_thread() {
  static DeepThread thread;
  thread.go_on();
  return {thread.state(), true};
}

Interpreter::ThreadState task_thread() {
  static const TaskThread thread(kFrames);
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

enum class Tasks : std::uint8_t { kNo, kYes };

bool tick(long count, Tasks tasks) {
  constexpr std::size_t kRoomForAll = 1U << 26U;  // nothing drains this ring
  SeenFilter seen;
  Result<SampleRing> ring = SampleRing::create(kRoomForAll);
  if (!ring.ok()) return false;
  // As rarely as possible, so that ticks of the clock do not count among ours.
  const TickSettings settings{.rate_hz = 1, .clock = os::TickClock::kThreadCpu};
  Interpreter interpreter{fake_layout(), address_of(&kFakeCodeType), Address{}, &deep_thread, {}, {}};
  if (tasks == Tasks::kYes) {
    interpreter.thread_state_of_caller = &task_thread;
    interpreter.tasks = fake_task_layout();
  }
  Result<std::unique_ptr<CpuSampler>> sampler = CpuSampler::create(settings, interpreter, ring.value(), seen);
  if (!sampler.ok()) return false;
  sampler.value()->start({});
  siginfo_t info{};
  info.si_code = SI_TIMER;
  info.si_value.sival_int = 0;  // this thread is the only one, so it has the first slot
  const std::size_t before = ring.value().backlog();
  for (long done = 0; done < count; ++done) sampler.value()->tick(info);
  // Of a stack its innermost frame is new at each tick; of a task's nothing is.
  const std::size_t slots = tasks == Tasks::kYes ? 0 : 1;
  const std::size_t least = static_cast<std::size_t>(count) * (sizeof(RawSample) + slots * sizeof(cpython::PyFrame));
  const bool all_recorded = ring.value().backlog() - before >= least;
  sampler.value()->stop();
  const bool all_found =
      tasks == Tasks::kNo || sampler.value()->task_counts().found == static_cast<std::uint64_t>(count);
  return all_recorded && all_found;
}

}  // namespace
}  // namespace plimsoll::capture::testing

int main(int count, char** arguments) {
  if (count != 3) return EXIT_FAILURE;
  const long repeats = std::atol(arguments[2]);
  const std::string_view what = arguments[1];
  using plimsoll::capture::testing::Tasks;
  const bool worked = what == "walk"
                          ? plimsoll::capture::testing::walk(repeats)
                          : plimsoll::capture::testing::tick(repeats, what == "tasks" ? Tasks::kYes : Tasks::kNo);
  return worked ? EXIT_SUCCESS : EXIT_FAILURE;
}
