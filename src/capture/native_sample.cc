#include "capture/native_sample.h"

#include "capture/loop_calls.h"
#include "capture/walk_into.h"
#include "memory/copied.h"
#include "memory/local.h"

namespace plimsoll::capture {
namespace {

std::uint64_t start_of_copy(const native::Registers& registers) {
  return registers.value[native::kStackPointer] - native::kRedZone;
}

// Copies the stack into `room`, as much as fits or can be read. How many bytes that took.
std::size_t copy_stack(const NativePlace& place, Address leaf, std::span<std::byte> room) noexcept {
  if (room.size() < sizeof(RawStack)) return 0;
  auto* copy = new (room.data()) RawStack{place.registers, leaf, place.known, 0};
  const std::uint64_t most = (room.size() - sizeof(RawStack)) / 8 * 8;
  const memory::LocalReader memory;
  auto* words = reinterpret_cast<std::uint64_t*>(room.data() + sizeof(RawStack));
  const std::uint64_t start = start_of_copy(place.registers);
  while (copy->bytes < most && memory.load(Address{start + copy->bytes}, words[copy->bytes / 8])) copy->bytes += 8;
  return sizeof(RawStack) + copy->bytes;
}

}  // namespace

std::size_t copy_bytes(const NativeStack& native, std::span<const std::byte> rest) {
  if (native.head.stop != native::UnwindStop::kNoModule) return 0;
  return sizeof(RawStack) + reinterpret_cast<const RawStack*>(rest.data())->bytes;
}

NativeStack unwind_copy(std::span<const std::byte> rest, const native::ModuleMap& modules, std::size_t max_depth,
                        std::vector<native::NativeFrame>& frames) {
  const auto& copy = *reinterpret_cast<const RawStack*>(rest.data());
  frames.resize(max_depth);
  const memory::CopiedMemory stack(Address{start_of_copy(copy.registers)}, rest.subspan(sizeof copy, copy.bytes));
  const native::Unwind unwound =
      native::unwind(stack, memory::LocalReader{}, modules, copy.registers, frames, copy.known);
  const std::span<const native::NativeFrame> found = std::span(frames).first(unwound.count);
  return {{Address{copy.registers.value[native::kStackPointer]},
           unwound.count,
           unwound.stop,
           find_leaf(stack, modules, found, copy.leaf),
           {}},
          found};
}

NativePlace caller_of_library(const native::ModuleMap& modules) noexcept {
  NativePlace place{native::registers_here(), native::Known::kAll};
  const native::CodeRange* here = modules.find(place.registers.pc);
  if (here != nullptr && native::leave(memory::LocalReader{}, modules, *here, place.registers))
    place.known = native::Known::kCaller;
  return place;
}

NativeSample write_native_stack(std::span<std::byte> room, RawSample& sample, const native::ModuleMap& modules,
                                const NativePlace& place, const Interpreter& interpreter, Address thread_state,
                                std::size_t max_depth, SeenFilter& seen) noexcept {
  sample.has_native = 1;
  auto* native = new (room.data()) RawNative;
  std::byte* at = room.data() + sizeof(RawNative);
  const native::Unwind unwound = native::unwind(memory::LocalReader{}, modules, place.registers,
                                                {reinterpret_cast<native::NativeFrame*>(at), max_depth}, place.known);
  native->stack_pointer = Address{place.registers.value[native::kStackPointer]};
  native->count = unwound.count;
  native->stop = unwound.stop;
  Address leaf{};
  if (counts_calls(interpreter.layout) && !is_null(thread_state) &&
      cpython::current_frame(memory::LocalReader{}, interpreter.layout, thread_state, leaf))
    native->leaf = find_leaf(memory::LocalReader{}, modules,
                             {reinterpret_cast<const native::NativeFrame*>(at), unwound.count}, leaf);
  at += unwound.count * sizeof(native::NativeFrame);
  const std::size_t most_slots = 2 * max_depth + awaiting_slots(interpreter);
  if (unwound.stop == native::UnwindStop::kNoModule) {
    const auto left = static_cast<std::size_t>(room.data() + room.size() - at);
    at += copy_stack(place, leaf, {at, left - most_slots * sizeof(cpython::PyFrame)});
  }
  const std::span<cpython::PyFrame> slots{reinterpret_cast<cpython::PyFrame*>(at), most_slots};
  const auto registers = [&] { return place.registers; };
  const WrittenStack stack =
      walk_into(sample, interpreter, thread_state, registers, slots, seen, cpython::EntryMarks{});
  mark_frames(slots.first(sample.frame_count), seen);
  const auto before = static_cast<std::size_t>(at - room.data());
  return {before + stack.used * sizeof(cpython::PyFrame), before + stack.touched * sizeof(cpython::PyFrame),
          unwound.stop, sample.stop, stack.tasks};
}

NativeSample write_native_sample(std::span<std::byte> room, const RawSample& head, const native::ModuleMap& modules,
                                 const ucontext_t& context, const Interpreter& interpreter, Address thread_state,
                                 std::size_t max_depth, SeenFilter& seen) noexcept {
  auto* sample = new (room.data()) RawSample(head);
  NativeSample written =
      write_native_stack(room.subspan(sizeof head), *sample, modules, {native::registers_of(context)}, interpreter,
                         thread_state, max_depth, seen);
  written.used += sizeof head;
  written.written += sizeof head;
  return written;
}

}  // namespace plimsoll::capture
