#include "capture/run_reader.h"

#include <algorithm>

#include "base/clock.h"
#include "capture/awaiting_tasks.h"
#include "memory/local.h"

namespace plimsoll::capture {
namespace {

// Of the looks at a thread that failed lately: a moving average over about 32 of them, and where a thread becomes
// restless, and no longer is.
constexpr double kNewest = 1.0 / 32;
constexpr double kRestless = 0.04;
constexpr double kCalm = 0.015;
// Entries from C are looked at without a frame to show for it.
constexpr std::size_t kSpareLoads = 4096;

}  // namespace

RunReader::RunReader(const Interpreter& interpreter, CpuSampler& sampler, SampleRing& ring, SeenFilter& seen,
                     std::size_t max_depth)
    : interpreter_(interpreter),
      max_depth_(max_depth),
      stack_slots_(max_depth + awaiting_slots(interpreter)),
      sampler_(sampler),
      ring_(ring),
      seen_(seen),
      log_size_(max_depth * cpython::kLoadsPerFrame + kSpareLoads),
      log_(std::make_unique_for_overwrite<cpython::LoggedLoad[]>(log_size_)),
      probed_(std::make_unique_for_overwrite<cpython::PyFrame[]>(stack_slots_)) {}

bool RunReader::look_at(ThreadSlot& slot) {
  const Address thread_state{slot.thread_state.load(std::memory_order_relaxed)};
  if (!cpython::is_thread_state(memory::LocalReader{}, interpreter_.layout, thread_state)) return false;
  return slot.is_restless ? probe(slot, thread_state) : take_sample(slot, thread_state);
}

bool RunReader::take_sample(ThreadSlot& slot, Address thread_state) {
  const std::int64_t cpu_ns = os::thread_cpu_ns(slot.tid);
  if (cpu_ns <= std::max(slot.accounted_cpu_ns.load(std::memory_order_relaxed), slot.cpu_at_look_ns)) return false;
  slot.cpu_at_look_ns = cpu_ns;
  const SampleRing::Slot room = ring_.reserve(sizeof(RawSample) + stack_slots_ * sizeof(cpython::PyFrame));
  if (room.bytes.empty()) {
    sampler_.count_drop(DropReason::kRingFull, slot.account_until(cpu_ns));
    return true;
  }
  auto* sample = new (room.bytes.data()) RawSample;
  sample->thread = slot.serial;
  auto* frames = reinterpret_cast<cpython::PyFrame*>(room.bytes.data() + sizeof(RawSample));
  cpython::AwaitingStack stack;
  const cpython::Snapshot snapshot = read_stack(thread_state, {frames, stack_slots_}, sample->tags, stack);
  const bool is_running = os::thread_cpu_ns(slot.tid) != cpu_ns;
  const bool holds = is_running && snapshot.is_proven;
  sample->stop = cpython::WalkStop::kUnreadable;
  if (holds) {
    sample->stop = stack.stop;
    sample->time_ns = snapshot.time_ns;
    sample->frame_count = stack.own;
    sample->weight_ns = slot.account_until(cpu_ns);
    sampler_.count_tasks(stack.outcome);
  }
  const std::size_t touched = std::max(stack.touched, snapshot.walk.count);
  ring_.commit(room, sizeof(RawSample) + (holds ? stack.count : 0) * sizeof(cpython::PyFrame),
               sizeof(RawSample) + touched * sizeof(cpython::PyFrame));
  // Its time stays with the thread: the next sample pays for it.
  if (is_running && !holds) sampler_.count_drop(DropReason::kMoved, 0);
  judge(slot, holds);
  return true;
}

bool RunReader::probe(ThreadSlot& slot, Address thread_state) {
  const std::int64_t cpu_ns = os::thread_cpu_ns(slot.tid);
  if (cpu_ns <= slot.cpu_at_look_ns) return false;
  TagNumber tags = 0;
  cpython::AwaitingStack stack;
  const cpython::Snapshot snapshot = read_stack(thread_state, {probed_.get(), stack_slots_}, tags, stack);
  slot.cpu_at_look_ns = os::thread_cpu_ns(slot.tid);
  judge(slot, snapshot.is_proven && slot.cpu_at_look_ns != cpu_ns);
  return false;
}

void RunReader::judge(ThreadSlot& slot, bool holds) {
  slot.restlessness += kNewest * ((holds ? 0 : 1) - slot.restlessness);
  const bool changes = slot.is_restless ? slot.restlessness < kCalm : slot.restlessness > kRestless;
  if (changes) sampler_.take_by_ticks(slot, !slot.is_restless);
}

cpython::Snapshot RunReader::read_stack(Address thread_state, std::span<cpython::PyFrame> slots, TagNumber& tags,
                                        cpython::AwaitingStack& stack) {
  // What its frames refer to is noted before the proof: after it, the thread may let go of it.
  const auto note = [&](const cpython::Walk& walk, const auto& memory) {
    tags = tags_of(memory, interpreter_.layout, interpreter_.tags, thread_state);
    for (const cpython::PyFrame& frame : slots.first(walk.count)) seen_.mark(frame.code);
    stack = put_awaiting(memory, interpreter_, thread_state, slots, walk, seen_);
  };
  return cpython::snapshot_thread(memory::LocalReader{}, interpreter_.layout, interpreter_.code_type, thread_state,
                                  slots.first(max_depth_), {log_.get(), log_size_}, note);
}

}  // namespace plimsoll::capture
