#include "capture/allocation_recorder.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>

#include "base/clock.h"
#include "capture/tick_signals.h"
#include "capture/walk_into.h"
#include "memory/local.h"

namespace plimsoll::capture {
namespace {

// Which row of which session's thread table the calling thread is.
struct KnownThread {
  std::uint32_t session = 0;
  ThreadSerial serial;
};
thread_local KnownThread known_thread;
std::atomic<std::uint32_t> last_session{0};

// How long the drain thread may make no room before it is taken for stuck: it may wait for a lock that the allocating
// thread holds, or for a disk. It may also merely wait for a CPU, on a busy machine, and then this is to be enough.
constexpr std::int64_t kLongestWait = 200'000'000;
constexpr std::chrono::microseconds kPoll{100};

void leave_out_stack(RawSample& sample) {
  sample.stop = cpython::WalkStop::kComplete;
  sample.frame_count = 0;
  sample.has_native = 0;
}

}  // namespace

AllocationRecorder::AllocationRecorder(const Interpreter& interpreter, CpuSampler& sampler, SampleRing& ring,
                                       SeenFilter& seen, std::size_t max_depth, const native::Modules* modules,
                                       DrainGate& gate)
    : interpreter_(interpreter),
      max_depth_(max_depth),
      modules_(modules),
      most_stack_bytes_(modules != nullptr ? most_native_bytes(interpreter, max_depth) - sizeof(RawSample)
                                           : (max_depth + awaiting_slots(interpreter)) * sizeof(cpython::PyFrame)),
      session_(last_session.fetch_add(1, std::memory_order_relaxed) + 1),
      sampler_(sampler),
      ring_(ring),
      seen_(seen),
      gate_(gate) {}

SampleRing::Slot AllocationRecorder::reserve(std::size_t size, IfFull if_full) {
  const SampleRing::Slot room = ring_.reserve(size);
  if (room.bytes.empty()) {
    if (if_full == IfFull::kWait && !is_stuck_.load(std::memory_order_relaxed)) return wait_for_room(size);
  } else if (is_stuck_.load(std::memory_order_relaxed)) {
    is_stuck_.store(false, std::memory_order_relaxed);
  }
  return room;
}

SampleRing::Slot AllocationRecorder::wait_for_room(std::size_t size) {
  const int error = errno;
  const DrainGate::Ajar ajar(gate_);
  SampleRing::Slot room;
  std::uint64_t taken = ring_.taken();
  std::int64_t deadline = monotonic_ns() + kLongestWait;
  while (room.bytes.empty() && monotonic_ns() < deadline) {
    gate_.bell.ring();
    std::this_thread::sleep_for(kPoll);
    if (const std::uint64_t now = ring_.taken(); now != taken) {
      taken = now;
      deadline = monotonic_ns() + kLongestWait;
    }
    room = ring_.reserve(size);
  }
  if (room.bytes.empty()) is_stuck_.store(true, std::memory_order_relaxed);
  errno = error;
  return room;
}

ThreadSerial AllocationRecorder::serial_of_caller() {
  if (known_thread.session != session_) known_thread = {session_, sampler_.serial_of_caller()};
  return known_thread.serial;
}

bool AllocationRecorder::allocated(const RawAllocation& block) {
  if (is_closed_.load(std::memory_order_relaxed)) return false;
  const ThreadSerial serial = serial_of_caller();
  if (serial.is_none()) {
    known_thread = {};
    sampler_.count_drop(DropReason::kAllocation, 0);
    return false;
  }
  constexpr std::size_t kHead = sizeof(RawSample) + sizeof(RawAllocation);
  const SampleRing::Slot room = reserve(kHead + most_stack_bytes_, IfFull::kWait);
  if (room.bytes.empty()) {
    sampler_.count_drop(DropReason::kAllocation, 0);
    return false;
  }
  auto* sample = new (room.bytes.data()) RawSample;
  sample->kind = RawSample::Kind::kAllocation;
  sample->time_ns = monotonic_ns();
  sample->thread = serial;
  std::memcpy(room.bytes.data() + sizeof(RawSample), &block, sizeof block);
  NativeSample stack = write_stack(*sample, room.bytes.subspan(kHead));
  if (!cpython::is_proven(stack.stop)) {
    // The block counts all the same, as one without a stack. Else sums would lack what is allocated in such places, of
    // which some come again and again: greenlets save their stacks while they switch.
    sampler_.count_drop(reason_of(stack.stop), 0);
    leave_out_stack(*sample);
    stack.used = 0;
  }
  sampler_.count_tasks(stack.tasks);
  ring_.commit(room, kHead + stack.used, kHead + stack.written);
  return true;
}

NativeSample AllocationRecorder::write_stack(RawSample& sample, std::span<std::byte> room) {
  const Address state = interpreter_.thread_state_of_caller().address;
  if (modules_ != nullptr) {
    const RunningHandler uses_modules;
    const native::ModuleMap& modules = *modules_->current();
    return write_native_stack(room, sample, modules, caller_of_library(modules), interpreter_, state, max_depth_,
                              seen_);
  }
  const std::span<cpython::PyFrame> frames{reinterpret_cast<cpython::PyFrame*>(room.data()),
                                           max_depth_ + awaiting_slots(interpreter_)};
  const WrittenStack stack = walk_into(sample, interpreter_, state, Called{}, frames, seen_, cpython::NoEntries{});
  mark_frames(frames.first(sample.frame_count), seen_);
  return {stack.used * sizeof(cpython::PyFrame), stack.touched * sizeof(cpython::PyFrame),
          native::UnwindStop::kComplete, sample.stop, stack.tasks};
}

void AllocationRecorder::released(const RawRelease& release) {
  const Waiting now{monotonic_ns(), release};
  const std::lock_guard guard(mutex_);
  if (is_closed_.load(std::memory_order_relaxed)) return;
  put_waiting(IfFull::kGiveUp);
  if (waiting_.empty() && put(now, IfFull::kGiveUp)) return;
  try {
    waiting_.push_back(now);
  } catch (const std::bad_alloc&) {
    put_waiting(IfFull::kWait);
    if (!waiting_.empty() || !put(now, IfFull::kWait)) sampler_.count_drop(DropReason::kAllocation, 0);
  }
}

void AllocationRecorder::flush_releases() {
  const std::lock_guard guard(mutex_);
  if (!is_closed_.load(std::memory_order_relaxed)) put_waiting(IfFull::kWait);
}

bool AllocationRecorder::put_rest() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return true;  // whoever has it may be waiting for room
  put_waiting(IfFull::kGiveUp);
  return !waiting_.empty();
}

void AllocationRecorder::put_waiting(IfFull if_full) {
  if (waiting_.empty()) return;
  const auto first_left =
      std::find_if(waiting_.begin(), waiting_.end(), [this, if_full](const Waiting& at) { return !put(at, if_full); });
  waiting_.erase(waiting_.begin(), first_left);
}

bool AllocationRecorder::put(const Waiting& waiting, IfFull if_full) {
  constexpr std::size_t kSize = sizeof(RawSample) + sizeof(RawRelease);
  const SampleRing::Slot room = reserve(kSize, if_full);
  if (room.bytes.empty()) return false;
  auto* sample = new (room.bytes.data()) RawSample;
  sample->kind = RawSample::Kind::kRelease;
  sample->time_ns = waiting.time_ns;
  std::memcpy(room.bytes.data() + sizeof(RawSample), &waiting.release, sizeof waiting.release);
  ring_.commit(room, kSize, kSize);
  return true;
}

}  // namespace plimsoll::capture
