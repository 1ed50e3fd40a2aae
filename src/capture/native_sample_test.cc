#include "capture/native_sample.h"

#include <gtest/gtest.h>

#include <array>

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "capture/interleave.h"
#include "capture/native_resolver.h"
#include "capture/testing.h"
#include "memory/local.h"

namespace plimsoll::capture {
namespace {

using testing::FakeFrame;
using testing::FakeFunction;
using testing::FakeThreadState;

// A made-up interpreter's loop, which runs on the real stack: each call of run() is an entry from C, as CPython's are.
struct Machine {
  FakeThreadState thread;
  FakeFunction outer{"outer"}, inner{"inner"};
  native::Modules modules;
  SeenFilter seen;
  std::vector<std::byte> record = std::vector<std::byte>(most_native_bytes({}, 64));
  NativeSample taken;

  // Runs a function, with another one that it has called already, and calls `then` from it.
  template <typename Then>
  [[gnu::noinline]] void run(const FakeFunction& function, Then then) {
    const FakeFrame* before = thread.current_frame.load();
    const FakeFrame entry{nullptr, before, nullptr, 3};
    const FakeFrame frame = function.frame(2, &entry);
    thread.current_frame.store(&frame);
    then();
    thread.current_frame.store(before);
  }
  [[gnu::noinline]] void take() {
    const Interpreter interpreter{testing::fake_layout(), address_of(&testing::kFakeCodeType), {}, nullptr, {}};
    ucontext_t context;
    ASSERT_EQ(::getcontext(&context), 0);
    RawSample head;
    head.time_ns = monotonic_ns();
    taken = write_native_sample(record, head, *modules.current(), context, interpreter, address_of(&thread), 64, seen);
  }
};

// Functions of machine code around and between those of the made-up interpreter.
[[gnu::noinline]] void between(Machine& machine) {
  machine.run(machine.inner, [&] { machine.take(); });
  asm volatile("" ::: "memory");
}
[[gnu::noinline]] void around(Machine& machine) {
  machine.run(machine.outer, [&] { between(machine); });
  asm volatile("" ::: "memory");
}

class NativeSampleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!native::kCanUnwind) GTEST_SKIP() << "machine code is not unwound here";
    ASSERT_TRUE(memory::FaultGuard::ensure_installed().ok());
    ASSERT_TRUE(machine_.modules.refresh(1).ok());
  }
  Machine machine_;
};

TEST_F(NativeSampleTest, HasPythonAndMachineCodeInTheOrderOfTheirCalls) {
  // GIVEN C that enters Python that calls C that enters Python WHEN a sample is taken there
  around(machine_);
  const auto& raw = *reinterpret_cast<const RawSample*>(machine_.record.data());
  const std::span<const std::byte> rest = std::span<const std::byte>(machine_.record).subspan(sizeof raw);
  ASSERT_EQ(raw.stop, cpython::WalkStop::kComplete);
  ASSERT_EQ(raw.frame_count, 4U);  // two functions, two entries
  const NativeStack native = native_stack_of(rest);
  ASSERT_EQ(native.head.stop, native::UnwindStop::kComplete);
  const std::span frames(reinterpret_cast<const cpython::PyFrame*>(rest.data() + native_bytes(native)), 4);
  EXPECT_EQ(machine_.taken.used, sizeof raw + native_bytes(native) + frames.size_bytes());

  // THEN they interleave, and each entry has taken the place of one frame of machine code
  std::vector<StackItem> items;
  ASSERT_TRUE(interleave(native, frames, raw.stop, items));
  EXPECT_EQ(items.size(), native.frames.size());
  CodeRegistry registry(testing::fake_layout());
  NativeResolver resolver(machine_.modules, registry);
  std::string order;
  for (const StackItem& item : items) {
    if (item.kind == StackItem::Kind::kPython) {
      order += frames[item.index].code == machine_.inner.address() ? " inner" : " outer";
      continue;
    }
    const std::string& name =
        resolver.function(resolver.frame_at(native.frames[item.index].instruction, raw.time_ns)->code).name;
    for (const char* known : {"Machine::take", "between(", "around("})
      if (name.find(known) != std::string::npos && name.find("run<") == std::string::npos)
        order += std::string(" ") + known;
  }
  EXPECT_EQ(order, " Machine::take inner between( outer around(");
}

TEST_F(NativeSampleTest, IsOfMachineCodeAloneWherePythonIsUnknown) {
  const Interpreter interpreter{testing::fake_layout(), address_of(&testing::kFakeCodeType), {}, nullptr, {}};
  ucontext_t context;
  ASSERT_EQ(::getcontext(&context), 0);
  write_native_sample(machine_.record, {}, *machine_.modules.current(), context, interpreter, Address{}, 64,
                      machine_.seen);
  const auto& raw = *reinterpret_cast<const RawSample*>(machine_.record.data());
  EXPECT_EQ(raw.python, RawSample::Python::kNoState);
  EXPECT_EQ(raw.frame_count, 0U);
  EXPECT_GT(native_stack_of(std::span<const std::byte>(machine_.record).subspan(sizeof raw)).head.count, 2U);
}

// Calls `then` with so many more frames of a kilobyte each on the stack.
template <typename Then>
[[gnu::noinline]] void from_deep_inside(int frames, const Then& then) {
  std::array<char, 1024> part;
  asm volatile("" ::"r"(part.data()) : "memory");
  frames == 0 ? then() : from_deep_inside(frames - 1, then);
  asm volatile("" ::"r"(part.data()) : "memory");
}

class UnknownCode : public NativeSampleTest, public ::testing::WithParamInterface<int> {};

TEST_P(UnknownCode, CanBeUnwoundLaterWhenItIsKnown) {
  // GIVEN a sample in code of which nothing is known: it was loaded a moment ago; perhaps deep in imports
  constexpr std::size_t kDepth = 2048;
  const native::RulePool pool;
  const native::ModuleMap nothing(std::vector<native::CodeRange>(), pool);
  std::vector<std::byte> record(most_native_bytes({}, kDepth));
  const Interpreter interpreter{testing::fake_layout(), address_of(&testing::kFakeCodeType), {}, nullptr, {}};
  ucontext_t context;
  NativeSample taken;
  std::vector<native::NativeFrame> expected(kDepth);
  native::Unwind direct;
  from_deep_inside(GetParam(), [&] {
    ASSERT_EQ(::getcontext(&context), 0);
    taken = write_native_sample(record, {}, nothing, context, interpreter, Address{}, kDepth, machine_.seen);
    direct =
        native::unwind(memory::LocalReader{}, *machine_.modules.current(), native::registers_of(context), expected);
  });
  EXPECT_EQ(taken.native_stop, native::UnwindStop::kNoModule);
  const std::span<const std::byte> rest = std::span<const std::byte>(record).subspan(sizeof(RawSample));
  const NativeStack first = native_stack_of(rest);
  ASSERT_EQ(first.head.stop, native::UnwindStop::kNoModule);
  const std::span<const std::byte> copy = rest.subspan(native_bytes(first));
  EXPECT_EQ(taken.used, sizeof(RawSample) + native_bytes(first) + copy_bytes(first, copy));

  // WHEN it is known THEN the copy of the stack gives what the stack itself would have given
  std::vector<native::NativeFrame> frames;
  const NativeStack later = unwind_copy(copy, *machine_.modules.current(), kDepth, frames);
  EXPECT_EQ(later.head.stop, native::UnwindStop::kComplete);
  ASSERT_EQ(later.frames.size(), direct.count);
  for (std::size_t i = 0; i < direct.count; ++i) {
    EXPECT_EQ(later.frames[i].instruction, expected[i].instruction);
    EXPECT_EQ(later.frames[i].cfa, expected[i].cfa);
  }
}

INSTANTIATE_TEST_SUITE_P(FromFewAndManyFrames, UnknownCode, ::testing::Values(0, 200));

TEST(NativeSampleRoom, OfARingThatGetsFullLeavesRoomForOthers) {
  // GIVEN a ring to which samples come that take as much as they may, and nobody who empties it
  constexpr std::size_t kDepth = 2048;
  SampleRing ring = SampleRing::create(std::size_t{4} << 20U).take();
  std::size_t samples = 0, whole = 0;
  while (true) {
    const std::size_t copied = most_copied(ring);
    const SampleRing::Slot room = ring.reserve(most_native_bytes({}, kDepth, copied));
    if (room.bytes.empty()) break;
    ring.commit(room, copied, copied);
    ++samples;
    if (copied == kMostCopied) ++whole;
  }
  // THEN the first ones have all they may, and as it gets full there is room for more, with less
  EXPECT_GT(whole, 0U);
  EXPECT_GT(samples, 24U);
}

TEST_F(NativeSampleTest, BeginsWhereALibraryWasCalledFrom) {
  // GIVEN a thread that is in several functions of this program, which libc has called
  const native::ModuleMap& modules = *machine_.modules.current();
  const native::Registers here = native::registers_here();
  std::vector<native::NativeFrame> all(256), outside(256);
  const native::Unwind whole = native::unwind(memory::LocalReader{}, modules, here, all);
  ASSERT_EQ(whole.stop, native::UnwindStop::kComplete);
  // WHEN it is asked what has called them
  const NativePlace caller = caller_of_library(modules);
  // THEN the stack from there on is the same, without these functions
  ASSERT_EQ(caller.known, native::Known::kCaller);
  const native::Unwind rest = native::unwind(memory::LocalReader{}, modules, caller.registers, outside, caller.known);
  EXPECT_EQ(rest.stop, native::UnwindStop::kComplete);
  ASSERT_GT(rest.count, 0U);
  ASSERT_LT(rest.count, whole.count);
  const std::size_t left_out = whole.count - rest.count;
  for (std::size_t i = 0; i < rest.count; ++i) {
    EXPECT_EQ(outside[i].instruction, all[left_out + i].instruction);
    EXPECT_EQ(outside[i].cfa, all[left_out + i].cfa);
  }
  const native::CodeRange& ours = *modules.find(here.pc);
  for (std::size_t i = 0; i < left_out; ++i) {
    EXPECT_GE(raw(all[i].instruction), ours.start);
    EXPECT_LT(raw(all[i].instruction), ours.end);
  }
}

TEST_F(NativeSampleTest, NamesCodeOfNoFile) {
  CodeRegistry registry(testing::fake_layout());
  NativeResolver resolver(machine_.modules, registry);
  const CodeId id = resolver.frame_at(Address{0x1000}, monotonic_ns())->code;
  EXPECT_EQ(resolver.function(id).name, "machine code of no file");
  EXPECT_EQ(resolver.function(id).file, "");
}

}  // namespace
}  // namespace plimsoll::capture
