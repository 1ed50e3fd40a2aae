#include "capture/wait_reader.h"

#include <algorithm>

#include "base/clock.h"
#include "capture/awaiting_tasks.h"
#include "capture/wait_activity.h"
#include "cpython/gil.h"
#include "memory/local.h"

namespace plimsoll::capture {
namespace {

// A wait is told of at least so often, so that a file that is read meanwhile, or cut, is not far behind.
constexpr std::int64_t kTellAfter = 500'000'000;
// So many threads may have files of /proc kept open for them.
constexpr std::size_t kProbesOpen = 64;
// A thread that keeps moving is running, after so many tries.
constexpr int kTries = 3;

}  // namespace

WaitReader::WaitReader(const Interpreter& interpreter, CpuSampler& sampler, SampleRing& ring, SeenFilter& seen,
                       std::size_t max_depth)
    : interpreter_(interpreter), max_depth_(max_depth), sampler_(sampler), ring_(ring), seen_(seen) {}

void WaitReader::pause() {
  if (std::exchange(was_paused_, true)) return;
  finish();  // (What no look has met goes to the next wait of the thread that is met, after the pause.)
}

void WaitReader::finish() {
  for (auto& [serial, of] : watched_) tell_end(ThreadSerial{serial}, *of, RawSample::Stack::kSameLast);
}

WaitReader::Watched& WaitReader::watched(const ThreadSlot& slot) {
  auto known = watched_.find(slot.serial.index());
  if (known == watched_.end()) {
    auto made = std::make_unique<Watched>();
    const bool keep = watched_.size() < kProbesOpen;
    made->probe = os::ThreadProbe(slot.tid, keep ? os::ThreadProbe::Keep::kOpen : os::ThreadProbe::Keep::kClosed);
    // A thread's time counts from its beginning, or from the end of a pause.
    made->looked = clocks_of(slot, *made);
    if (!was_paused_) {
      made->looked.now_ns = slot.info.start_ns;
      made->looked.cpu_ns = slot.start_cpu_ns;
    }
    known = watched_.emplace(slot.serial.index(), std::move(made)).first;
  } else if (was_paused_) {
    Watched& of = *known->second;
    of.looked = clocks_of(slot, of);
    of.activity = Activity::kRunning;
    of.ready_told_ns = 0;
  }
  known->second->seen_in_round = round_;
  return *known->second;
}

ThreadClocks WaitReader::clocks_of(const ThreadSlot& slot, const Watched& of) {
  return {monotonic_ns(), os::thread_cpu_ns(slot.tid), std::max<std::int64_t>(of.probe.ready_ns(), 0)};
}

bool WaitReader::look_at(const ThreadSlot& slot) {
  Watched& of = watched(slot);
  const std::int64_t cpu_ns = os::thread_cpu_ns(slot.tid);
  if (cpu_ns == 0) return false;  // it has ended
  const bool is_waiting = of.activity != Activity::kRunning && of.activity != Activity::kReady;
  if (is_waiting && cpu_ns == of.looked.cpu_ns) {
    const std::int64_t now = std::max(monotonic_ns(), of.looked.now_ns);
    of.open_ns += now - std::exchange(of.looked.now_ns, now);
    if (of.open_ns >= kTellAfter) put_same(slot.serial, of, RawSample::Stack::kSame);  // else with the next look
    return false;
  }
  if (is_waiting) tell_end(slot.serial, of, RawSample::Stack::kSame);
  const Address thread_state{slot.thread_state.load(std::memory_order_relaxed)};
  if (is_null(thread_state) || !cpython::is_thread_state(memory::LocalReader{}, interpreter_.layout, thread_state)) {
    // A thread of native code: no Python program waits in it.
    of.looked = clocks_of(slot, of);
    of.activity = Activity::kRunning;
    of.unplaced_ns = of.unplaced_ready_ns = of.open_ns = 0;
    return false;
  }
  if (find_wait(slot, of, thread_state)) return of.activity == Activity::kReady;
  found_running(slot, of);
  return true;
}

bool WaitReader::find_wait(const ThreadSlot& slot, Watched& of, Address thread_state) {
  for (int tried = 0; tried < kTries; ++tried) {
    const ThreadClocks now = fitted(of.looked, clocks_of(slot, of));
    const os::KernelWait wait = of.probe.wait();
    if (now.cpu_ns == 0) return false;
    const bool has_moved = os::thread_cpu_ns(slot.tid) != now.cpu_ns;
    if (has_moved && wait.kind == os::KernelWait::Kind::kRunnable) return false;
    if (has_moved) continue;
    const Activity activity = activity_of(wait, [&](Address futex) { return is_of_gil(futex, thread_state); });
    const bool is_ready = activity == Activity::kReady;
    const TimeSpent since = time_spent(of.looked, now, of.ready_told_ns);
    const std::int64_t weight_ns =
        is_ready ? of.unplaced_ready_ns + since.ready_ns + since.wait_ns : of.unplaced_ns + since.wait_ns;
    const Proof proof = put_stack(slot, thread_state, activity, weight_ns, now.cpu_ns);
    if (proof == Proof::kMoved) continue;
    of.looked = now;
    of.ready_told_ns -= since.told_ns;
    if (is_ready) {
      of.unplaced_ready_ns = 0;
      of.ready_told_ns += since.wait_ns;  // the kernel counts a turn in the queue when it is over
    } else {
      of.unplaced_ready_ns += since.ready_ns;
      of.unplaced_ns = 0;
    }
    of.activity = proof == Proof::kHolds ? activity : Activity::kRunning;
    return true;
  }
  return false;
}

void WaitReader::found_running(const ThreadSlot& slot, Watched& of) {
  const ThreadClocks now = fitted(of.looked, clocks_of(slot, of));
  if (now.cpu_ns == 0) return;
  const TimeSpent since = time_spent(of.looked, now, of.ready_told_ns);
  of.looked = now;
  of.ready_told_ns -= since.told_ns;
  of.unplaced_ready_ns += since.ready_ns;
  const bool was_waiting = of.activity != Activity::kRunning && of.activity != Activity::kReady;
  if (was_waiting) {
    of.open_ns += since.wait_ns;
    tell_end(slot.serial, of, RawSample::Stack::kSame);
  } else {
    of.unplaced_ns += since.wait_ns;
  }
  of.activity = Activity::kRunning;
}

WaitReader::Proof WaitReader::put_stack(const ThreadSlot& slot, Address thread_state, Activity activity,
                                        std::int64_t weight_ns, std::int64_t cpu_ns) {
  const std::size_t slots = max_depth_ + awaiting_slots(interpreter_);
  const SampleRing::Slot room = ring_.reserve(sizeof(RawSample) + slots * sizeof(cpython::PyFrame));
  if (room.bytes.empty()) {
    sampler_.count_drop(DropReason::kRingFull, 0);
    return Proof::kLost;
  }
  auto* sample = new (room.bytes.data()) RawSample;
  sample->time_ns = monotonic_ns();
  sample->weight_ns = weight_ns;
  sample->activity = activity;
  sample->thread = slot.serial;
  const std::span<cpython::PyFrame> frames{reinterpret_cast<cpython::PyFrame*>(room.bytes.data() + sizeof(RawSample)),
                                           slots};
  const cpython::Walk walk = cpython::walk_thread(memory::LocalReader{}, interpreter_.layout, interpreter_.code_type,
                                                  thread_state, frames.first(max_depth_));
  sample->tags = tags_of(memory::LocalReader{}, interpreter_.layout, interpreter_.tags, thread_state);
  // Before the proof: after it, the thread may run on and let go of its code objects.
  const bool is_stack = cpython::is_proven(walk.stop);
  cpython::AwaitingStack stack;
  stack.touched = walk.count;
  if (is_stack) {
    for (const cpython::PyFrame& frame : frames.first(walk.count)) seen_.mark(frame.code);
    stack = put_awaiting(memory::LocalReader{}, interpreter_, thread_state, frames, walk, seen_);
  }
  const bool has_moved = os::thread_cpu_ns(slot.tid) != cpu_ns;
  const bool holds = is_stack && !has_moved;
  sample->stop = has_moved ? cpython::WalkStop::kUnreadable : is_stack ? stack.stop : walk.stop;
  sample->frame_count = holds ? stack.own : 0;
  if (holds) sampler_.count_tasks(stack.outcome);
  ring_.commit(room, sizeof(RawSample) + (holds ? stack.count : 0) * sizeof(cpython::PyFrame),
               sizeof(RawSample) + stack.touched * sizeof(cpython::PyFrame));
  if (has_moved) return Proof::kMoved;
  if (!is_stack) sampler_.count_drop(reason_of(walk.stop), 0);
  return is_stack ? Proof::kHolds : Proof::kLost;
}

void WaitReader::tell_end(ThreadSerial serial, Watched& of, RawSample::Stack stack) {
  if (put_same(serial, of, stack) || of.open_ns <= 0) return;
  of.open_ns = 0;
  sampler_.count_drop(DropReason::kRingFull, 0);
}

bool WaitReader::put_same(ThreadSerial serial, Watched& of, RawSample::Stack stack) {
  const bool is_last = stack == RawSample::Stack::kSameLast;
  if (of.open_ns <= 0 && !is_last) return true;
  const SampleRing::Slot room = ring_.reserve(sizeof(RawSample));
  if (room.bytes.empty()) return false;
  auto* sample = new (room.bytes.data()) RawSample;
  sample->time_ns = monotonic_ns();
  sample->weight_ns = std::exchange(of.open_ns, 0);
  sample->activity = of.activity;
  sample->thread = serial;
  sample->stack = stack;
  ring_.commit(room, sizeof(RawSample), sizeof(RawSample));
  return true;
}

void WaitReader::end_round() {
  was_paused_ = false;
  for (auto at = watched_.begin(); at != watched_.end();) {
    const auto here = at++;
    if (here->second->seen_in_round == round_) continue;
    tell_end(ThreadSerial{here->first}, *here->second, RawSample::Stack::kSameLast);
    watched_.erase(here);
  }
  ++round_;
}

bool WaitReader::is_of_gil(Address lock, Address thread_state) const {
  const memory::LocalReader memory;
  const cpython::Layout& layout = interpreter_.layout;
  Address interpreter{};
  return memory::load_address(memory, offset_by(thread_state, layout.tstate.interpreter), interpreter) &&
         cpython::is_in_gil(cpython::gil_of(memory, layout, interpreter_.runtime, interpreter), lock);
}

}  // namespace plimsoll::capture
