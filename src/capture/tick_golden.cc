// capture/tick_golden.cc: the fast path, over and over, for tools/checks/golden.py to count its instructions.
//
//   tick_golden walk 1000     walks a stack of 20 frames 1000 times
//   tick_golden tick 1000     a whole tick 1000 times: clocks, ring, walk, filter
//
// The stack is made up: the frames of CPython 3.13 as far as a walker looks at them, in this process's memory.
#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "capture/cpu_sampler.h"
#include "cpython/walk.h"
#include "memory/local.h"

namespace plimsoll::capture {
namespace {

constexpr std::size_t kFrames = 20;

// What a walker reads of a code object, a frame, and a thread state.
struct MadeUpCode {
  std::uint64_t references = 1;
  const void* type = nullptr;
  std::int64_t size = 16;  // in units of two bytes
  std::array<std::uint16_t, 16> bytecode{};
};
struct MadeUpFrame {
  const MadeUpCode* executable = nullptr;
  const MadeUpFrame* previous = nullptr;
  const std::uint16_t* instruction = nullptr;
  std::uint8_t owner = 0;
};
struct MadeUpThread {
  const MadeUpFrame* current_frame = nullptr;
};

template <typename T>
Address address_of(const T* pointer) {
  return Address{reinterpret_cast<std::uint64_t>(pointer)};
}

// A thread that is 20 calls deep.
class MadeUpStack {
 public:
  MadeUpStack() {
    for (std::size_t i = 0; i < kFrames; ++i) {
      codes_[i].type = &type_;
      const MadeUpFrame* previous = i + 1 < kFrames ? &frames_[i + 1] : nullptr;
      frames_[i] = {&codes_[i], previous, &codes_[i].bytecode[i % codes_[i].bytecode.size()], 0};
    }
    thread_.current_frame = frames_.data();
  }
  [[nodiscard]] Address thread() const { return address_of(&thread_); }
  [[nodiscard]] Address code_type() const { return address_of(&type_); }

  static cpython::Layout layout() {
    cpython::Layout layout;
    layout.frame_style = cpython::FrameStyle::kDirect;
    layout.position_style = cpython::PositionStyle::kInstruction;
    layout.tstate.current_frame = offsetof(MadeUpThread, current_frame);
    layout.frame.executable = offsetof(MadeUpFrame, executable);
    layout.frame.previous = offsetof(MadeUpFrame, previous);
    layout.frame.position = offsetof(MadeUpFrame, instruction);
    layout.frame.owner = offsetof(MadeUpFrame, owner);
    layout.frame.tlbc_index = cpython::kNoField;
    layout.code.bytecode = offsetof(MadeUpCode, bytecode);
    layout.code.tlbc = cpython::kNoField;
    layout.object.type = offsetof(MadeUpCode, type);
    layout.object.var_size = offsetof(MadeUpCode, size);
    layout.first_shim_owner = 3;
    return layout;
  }

 private:
  char type_ = 0;
  std::array<MadeUpCode, kFrames> codes_;
  std::array<MadeUpFrame, kFrames> frames_;
  MadeUpThread thread_;
};

const MadeUpStack& stack() {
  static const MadeUpStack made_up;
  return made_up;
}

bool walk(long count) {
  const cpython::Layout layout = MadeUpStack::layout();
  std::array<cpython::PyFrame, 2 * kFrames> frames;
  for (; count > 0; --count) {
    Address frame{};
    if (!cpython::current_frame(memory::LocalReader{}, layout, stack().thread(), frame)) return false;
    const cpython::Walk walk = cpython::walk_frames(memory::LocalReader{}, layout, stack().code_type(), frame, frames);
    if (walk.stop != cpython::WalkStop::kComplete || walk.count != kFrames) return false;
  }
  return true;
}

bool tick(long count) {
  constexpr std::size_t kRoomForAll = 1U << 26U;  // nothing drains this ring
  SeenFilter seen;
  Result<SampleRing> ring = SampleRing::create(kRoomForAll);
  const Interpreter interpreter{MadeUpStack::layout(), stack().code_type(), [] { return stack().thread(); }};
  // As rarely as possible, so that ticks of the clock do not count among ours.
  const TickSettings settings{.rate_hz = 1, .clock = os::TickClock::kThreadCpu};
  if (!ring.ok()) return false;
  Result<std::unique_ptr<CpuSampler>> sampler = CpuSampler::create(settings, interpreter, ring.value(), seen);
  if (!sampler.ok()) return false;
  sampler.value()->start(Tid{});
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
}  // namespace plimsoll::capture

int main(int count, char** arguments) {
  if (count != 3) return EXIT_FAILURE;
  const long repeats = std::atol(arguments[2]);
  const bool is_tick = std::string_view(arguments[1]) == "tick";
  const bool worked = is_tick ? plimsoll::capture::tick(repeats) : plimsoll::capture::walk(repeats);
  return worked ? EXIT_SUCCESS : EXIT_FAILURE;
}
