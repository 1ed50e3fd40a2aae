#include "remote/native_reader.h"

#include <algorithm>

#include "base/clock.h"
#include "capture/loop_calls.h"
#include "memory/copied.h"

namespace plimsoll::remote {
namespace {

// So much is copied of a stack whose end is not known: its mapping is newer than our list of them.
constexpr std::size_t kOfUnknownSize = std::size_t{64} << 10U;

std::uint64_t start_of_copy(const native::Registers& registers) {
  return registers.value[native::kStackPointer] - native::kRedZone;
}

}  // namespace

NativeReader::NativeReader(const Target& target, os::ThreadStopper& stopper, std::size_t max_depth,
                           std::size_t most_stack, NativeFrames native)
    : target_(target),
      memory_(target.memory()),
      stopper_(stopper),
      most_stack_(most_stack),
      has_native_(native == NativeFrames::kYes),
      modules_(target.pid),
      frames_(max_depth) {}

Status NativeReader::refresh() {
  if (!has_native_) return Ok{};
  PLIMSOLL_TRY(modules_.refresh(monotonic_ns()));
  if (!follows_ && capture::counts_calls(target_.layout)) {
    follows_ = true;
    // (_PyRuntime itself may be in memory of no file.)
    (void)modules_.follow(is_null(target_.code_type) ? target_.runtime : target_.code_type, capture::kLoopFunction);
  }
  return Ok{};
}

bool NativeReader::interleave(const capture::NativeStack& native, const StackReader& python,
                              cpython::WalkStop python_stop, std::vector<capture::StackItem>& out) const {
  if (!capture::counts_calls(target_.layout)) return capture::interleave(native, python.frames(), python_stop, out);
  return modules_.current() != nullptr &&
         capture::interleave_by_calls(native, *modules_.current(), python.frames(), python_stop, out);
}

void NativeReader::note_leaf(Address thread_state) {
  leaf_ = Address{};
  if (has_native_ && capture::counts_calls(target_.layout) && !is_null(thread_state))
    (void)cpython::current_frame(memory_, target_.layout, thread_state, leaf_);
}

void NativeReader::copy_stack(const native::Registers& registers, native::Known known) {
  registers_ = registers;
  known_ = known;
  const std::uint64_t start = start_of_copy(registers);
  const std::uint64_t pointer = registers.value[native::kStackPointer];
  const std::optional<std::uint64_t> end = modules_.end_of_mapping(Address{pointer});
  const std::uint64_t size = end ? *end - start : kOfUnknownSize;
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(size, most_stack_));
  if (stack_.size() < wanted) stack_.resize(wanted);
  // Page by page, as what follows a stack need not be readable.
  blocks_.clear();
  for (std::size_t done = 0; done < wanted;) {
    const std::size_t page = memory::PagedReader::kPageSize - (start + done) % memory::PagedReader::kPageSize;
    const std::size_t here = std::min(page, wanted - done);
    blocks_.push_back({Address{start + done}, std::span(stack_).subspan(done, here)});
    done += here;
  }
  const std::size_t read = memory_.read_blocks(blocks_);
  copied_ = 0;
  for (std::size_t i = 0; i < read; ++i) copied_ += blocks_[i].out.size();
  is_cut_ = copied_ == wanted && (!end || wanted < size);
}

NativeReader::Outcome NativeReader::read_python(const Standing& standing, Address thread_state, StackReader& python,
                                                Look& look) {
  note_leaf(thread_state);
  if (is_null(thread_state)) {
    look.snapshot.time_ns = monotonic_ns();
    look.snapshot.is_proven = standing.goes_on();
  } else {
    look.snapshot = python.read(thread_state, standing);
  }
  return look.snapshot.is_proven ? Outcome::kRead : Outcome::kMoved;
}

NativeReader::Look NativeReader::read_waiting(const Standing& standing, const os::KernelWait& wait,
                                              Address thread_state, StackReader& python) {
  Look look;
  look.schedule = standing.schedule;
  if (is_null(wait.instruction) || is_null(wait.stack_pointer)) return look;
  native::Registers registers;
  registers.pc = raw(wait.instruction);
  registers.value[native::kStackPointer] = raw(wait.stack_pointer);
  copy_stack(registers, native::Known::kPlaceOnly);
  look.outcome = read_python(standing, thread_state, python, look);
  return look;
}

NativeReader::Look NativeReader::read_stopped(Tid tid, const os::ThreadProbe& probe, Address thread_state,
                                              StackReader& python) {
  Look look;
  switch (stopper_.stop(target_.pid, tid)) {
    case os::StopOutcome::kEnded: look.outcome = Outcome::kEnded; return look;
    case os::StopOutcome::kRefused: look.outcome = Outcome::kRefused; return look;
    case os::StopOutcome::kLate: look.outcome = Outcome::kLate; return look;
    case os::StopOutcome::kStopped: break;
  }
  const std::optional<os::ThreadRegisters> found = stopper_.registers();
  const std::optional<os::Schedule> schedule = probe.schedule();
  if (found && schedule) {
    look.schedule = *schedule;
    if (has_native_) {
      native::Registers registers{found->pc, {}};
      std::copy(found->value.begin(), found->value.end(), registers.value.begin());
      copy_stack(registers, native::Known::kAll);
    }
    look.outcome = read_python(Standing{&probe, *schedule}, thread_state, python, look);
  } else {
    look.outcome = Outcome::kEnded;
  }
  stopper_.let_go();
  return look;
}

native::Unwind NativeReader::unwind_copy() {
  const memory::CopiedMemory stack(Address{start_of_copy(registers_)}, std::span(stack_).first(copied_));
  native::Unwind unwound = native::unwind(stack, memory_, *modules_.current(), registers_, frames_, known_);
  if (unwound.stop == native::UnwindStop::kUnreadable && is_cut_) unwound.stop = native::UnwindStop::kTruncated;
  return unwound;
}

capture::NativeStack NativeReader::unwind() {
  if (modules_.current() == nullptr) return {};
  native::Unwind unwound = unwind_copy();
  // Code that was loaded a moment ago: it is in the list now.
  if (unwound.stop == native::UnwindStop::kNoModule && modules_.refresh(monotonic_ns()).ok()) unwound = unwind_copy();
  capture::RawNative head;
  head.stack_pointer = Address{registers_.value[native::kStackPointer]};
  head.count = unwound.count;
  head.stop = unwound.stop;
  const std::span<const native::NativeFrame> found = std::span(frames_).first(unwound.count);
  const memory::CopiedMemory stack(Address{start_of_copy(registers_)}, std::span(stack_).first(copied_));
  head.leaf = capture::find_leaf(stack, *modules_.current(), found, leaf_);
  return {head, found};
}

}  // namespace plimsoll::remote
