// cpython/walk_test.cc: the frame walker on drawings of every version's frames, sound ones and broken ones.
#include "cpython/walk.h"

#include <gtest/gtest.h>

#include <vector>

#include "cpython/testing.h"

namespace plimsoll::cpython {
namespace {

using testing::DrawnInterpreter;

// A walk and what it found, as a drawing.
struct Seen {
  Walk walk;
  std::string frames;
};

Seen walk_from(const DrawnInterpreter& python, Address frame, std::size_t room = 64) {
  std::vector<PyFrame> out(room);
  Seen seen;
  seen.walk = walk_frames(python.memory, python.layout, DrawnInterpreter::kCodeType, frame, out);
  seen.frames = python.text(std::span(out).first(seen.walk.count));
  return seen;
}

class WalkOf : public ::testing::TestWithParam<Layout> {
 protected:
  DrawnInterpreter python{GetParam()};

  [[nodiscard]] Address field(Address frame, std::uint32_t offset) const { return offset_by(frame, offset); }
  WalkStop stop_from(Address frame) const { return walk_from(python, frame).walk.stop; }
};
// Suites of the versions that have something: frames with an owner and an instruction pointer, plain or tagged
// pointers, and bytecode per thread.
class WalkOfInterpreterFrames : public WalkOf {};
class WalkOfPlainPointers : public WalkOf {};
class WalkOfTaggedPointers : public WalkOf {};
class WalkOfBytecodePerThread : public WalkOf {};

// ---- sound stacks ----

TEST_P(WalkOf, AThreadFindsItsFramesInnermostFirst) {
  // GIVEN a thread in a function called by a function
  const Address tstate = python.thread_state(python.draw_stack("inner@6 worker@12 main@2 |"));
  // WHEN its frames are walked
  Address frame{};
  ASSERT_TRUE(current_frame(python.memory, python.layout, tstate, frame));
  const Seen seen = walk_from(python, frame);
  // THEN they are all there, each at its instruction
  EXPECT_EQ(seen.walk.stop, WalkStop::kComplete);
  EXPECT_FALSE(seen.walk.leaf_skipped);
  EXPECT_EQ(seen.frames, "inner@6 worker@12 main@2");
}

TEST_P(WalkOf, AThreadWithoutPythonCodeFindsNone) {
  const Address tstate = python.thread_state(Address{});
  Address frame{1};
  ASSERT_TRUE(current_frame(python.memory, python.layout, tstate, frame));
  EXPECT_TRUE(is_null(frame));
  const Seen seen = walk_from(python, frame);
  EXPECT_EQ(seen.walk.stop, WalkStop::kComplete);
  EXPECT_EQ(seen.walk.count, 0U);
}

TEST_P(WalkOf, EntriesFromCAreSteppedOver) {
  const Seen seen = walk_from(python, python.draw_stack("| key@4 | sort@8 | | main@2 |"));
  EXPECT_EQ(seen.walk.stop, WalkStop::kComplete);
  EXPECT_FALSE(seen.walk.leaf_skipped);
  EXPECT_EQ(seen.frames, "key@4 sort@8 main@2");
}

TEST_P(WalkOf, GeneratorsAndFrameObjectsAreFramesLikeAnyOther) {
  const Address outer = python.frame("main", 2, Address{}, 2);
  const Address generator = python.frame("producer", 4, outer, 1);
  EXPECT_EQ(walk_from(python, python.frame("inner", 6, generator)).frames, "inner@6 producer@4 main@2");
  EXPECT_EQ(walk_from(python, python.draw_stack("send@6~ run@2~ main@0")).frames, "send@6 run@2 main@0");
}

TEST_P(WalkOf, RecursionIsAsDeepAsItIs) {
  std::string drawing = "| main@0 |";
  for (int depth = 0; depth < 500; ++depth) drawing = "recurse@8 " + drawing;
  const Seen seen = walk_from(python, python.draw_stack(drawing), 1000);
  EXPECT_EQ(seen.walk.stop, WalkStop::kComplete);
  EXPECT_EQ(seen.walk.count, 501U);
}

TEST_P(WalkOf, AStackThatDoesNotFitKeepsItsInnermostFramesAndSaysSo) {
  const Seen seen = walk_from(python, python.draw_stack("a@2 b@2 | c@2 d@2 |"), 3);
  EXPECT_EQ(seen.walk.stop, WalkStop::kTruncated);
  EXPECT_EQ(seen.frames, "a@2 b@2 c@2");
}

TEST_P(WalkOf, AStackThatJustFitsIsComplete) {
  const Seen seen = walk_from(python, python.draw_stack("a@2 b@2 | c@2 |"), 3);
  EXPECT_EQ(seen.walk.stop, WalkStop::kComplete);
  EXPECT_EQ(seen.frames, "a@2 b@2 c@2");
}

TEST_P(WalkOf, ThereMayBeNoRoomAtAll) {
  EXPECT_EQ(walk_from(python, python.draw_stack("a@2"), 0).walk.stop, WalkStop::kTruncated);
  EXPECT_EQ(walk_from(python, Address{}, 0).walk.stop, WalkStop::kComplete);
}

// ---- positions ----

TEST_P(WalkOf, AFrameBeforeItsFirstInstructionIsAtMinusTwo) {
  // 3.11 and 3.12 point one unit before the start, f_lasti is -1; from 3.13 a frame starts on its first instruction.
  EXPECT_EQ(walk_from(python, python.draw_stack("main@-2")).frames, "main@-2");
}

TEST_P(WalkOf, ThePositionMayBeAnywhereInTheBytecodeAndNowhereElse) {
  const std::int32_t end = static_cast<std::int32_t>(DrawnInterpreter::kUnits) * 2;
  EXPECT_EQ(walk_from(python, python.draw_stack("main@0")).frames, "main@0");
  EXPECT_EQ(walk_from(python, python.draw_stack("main@" + std::to_string(end - 2))).frames, "main@62");
  if (python.layout.position_style != PositionStyle::kInstruction) return;
  EXPECT_EQ(walk_from(python, python.draw_stack("main@" + std::to_string(end))).frames, "main@?");
  EXPECT_EQ(walk_from(python, python.draw_stack("main@-4")).frames, "main@?");
}

TEST_P(WalkOf, AnAbsurdPositionIsNoPosition) {
  const Address frame = python.draw_stack("main@4");
  for (const std::uint64_t absurd : {std::uint64_t{0}, std::uint64_t{1} << 63U, (std::uint64_t{1} << 63U) - 1,
                                     ~std::uint64_t{0}, std::uint64_t{0x7fffffff}}) {
    python.memory.put(field(frame, python.layout.frame.position), absurd);
    const Seen seen = walk_from(python, frame);
    EXPECT_EQ(seen.walk.stop, WalkStop::kComplete) << "the frame itself is proven";
    if (python.layout.position_style != PositionStyle::kInstruction) continue;
    EXPECT_EQ(seen.frames, "main@?") << absurd;
  }
}

TEST_P(WalkOf, APositionThatCannotBeReadIsNoPosition) {
  const Address frame = python.draw_stack("main@4");
  python.memory.erase(field(frame, python.layout.frame.position), 8);
  EXPECT_EQ(walk_from(python, frame).frames, "main@?");
}

TEST_P(WalkOfInterpreterFrames, ACodeObjectOfUnknownOrAbsurdLengthGivesNoPosition) {
  const Address frame = python.draw_stack("main@4");
  const Address size = field(python.code("main"), python.layout.object.var_size);
  python.memory.put(size, ~std::uint64_t{0});
  EXPECT_EQ(walk_from(python, frame).frames, "main@?");
  python.memory.erase(size, 8);
  EXPECT_EQ(walk_from(python, frame).frames, "main@?");
}

TEST_P(WalkOfBytecodePerThread, BytecodePerThreadIsFoundByItsIndex) {
  const Address frame = python.draw_stack("main@4");
  const Address index = field(frame, python.layout.frame.tlbc_index);
  // GIVEN a frame that runs copy 1 of two
  EXPECT_EQ(walk_from(python, frame).frames, "main@4");
  // WHEN it says another copy, or one that there is not THEN its instruction pointer means nothing
  for (const std::uint32_t wrong : {0U, 2U, ~0U}) {
    python.memory.put(index, wrong);
    EXPECT_EQ(walk_from(python, frame).frames, "main@?") << wrong;
  }
}

TEST_P(WalkOfBytecodePerThread, BytecodePerThreadThatCannotBeReadGivesNoPosition) {
  const Address frame = python.draw_stack("main@4");
  const Address copies = field(python.code("main"), python.layout.code.tlbc);
  for (const Address wrong : {Address{}, Address{0x666}}) {
    python.memory.put(copies, wrong);
    EXPECT_EQ(walk_from(python, frame).frames, "main@?");
  }
}

// ---- the innermost frame between two states ----

TEST_P(WalkOf, ALeafThatIsHalfPushedIsLeftOut) {
  const Address frame = python.draw_stack("leaf@0 worker@4 main@2 |");
  for (const std::uint64_t garbage :
       {std::uint64_t{0}, std::uint64_t{0x666000}, raw(DrawnInterpreter::kNone) | 1U, ~std::uint64_t{0}}) {
    python.memory.put(field(frame, python.layout.frame.executable), garbage);
    const Seen seen = walk_from(python, frame);
    EXPECT_EQ(seen.walk.stop, WalkStop::kComplete) << garbage;
    EXPECT_TRUE(seen.walk.leaf_skipped);
    EXPECT_EQ(seen.frames, "worker@4 main@2");
  }
}

TEST_P(WalkOf, OnlyTheLeafMayBeLeftOut) {
  const Address main = python.draw_stack("main@2 |");
  const Address broken = python.frame("broken", 0, main);
  python.memory.put(field(broken, python.layout.frame.executable), Address{0x666000});
  EXPECT_EQ(stop_from(python.frame("leaf", 0, broken)), WalkStop::kNotCode);
}

TEST_P(WalkOf, AnObjectOfAnotherTypeIsNotCode) {
  const Address outer = python.frame("impostor", 0, Address{});
  python.memory.put(field(python.code("impostor"), python.layout.object.type), DrawnInterpreter::kNone);
  EXPECT_EQ(stop_from(python.frame("leaf", 0, outer)), WalkStop::kNotCode);
}

// ---- tagged pointers ----

TEST_P(WalkOfTaggedPointers, TagsOfAStackReferenceAreNotPartOfIt) {
  for (std::uint64_t tag = 0; tag <= python.layout.executable_tag_mask; ++tag) {
    const Address outer = python.frame("main", 2, Address{});
    python.memory.put(field(outer, python.layout.frame.executable), raw(python.code("main")) | tag);
    EXPECT_EQ(walk_from(python, python.frame("leaf", 4, outer)).frames, "leaf@4 main@2") << tag;
  }
}

TEST_P(WalkOfPlainPointers, WhereThereAreNoTagsLowBitsAreDamage) {
  const Address outer = python.frame("main", 2, Address{});
  python.memory.put(field(outer, python.layout.frame.executable), raw(python.code("main")) | 1U);
  EXPECT_EQ(stop_from(python.frame("leaf", 4, outer)), WalkStop::kNotCode);
}

// ---- broken chains ----

TEST_P(WalkOf, CyclesOfAnyLengthEnd) {
  for (const bool of_shims : {false, true}) {
    if (of_shims && !python.has_shims()) continue;
    for (std::size_t length = 1; length <= 200; ++length) {
      // GIVEN three frames that lead into a ring of frames
      const Address last = of_shims ? python.shim(Address{}) : python.frame("ring", 2, Address{});
      Address first = last;
      for (std::size_t i = 1; i < length; ++i) first = of_shims ? python.shim(first) : python.frame("ring", 2, first);
      python.memory.put(field(last, python.layout.frame.previous), first);
      Address leaf = first;
      for (int i = 0; i < 3; ++i) leaf = python.frame("tail", 2, leaf);
      // WHEN they are walked THEN the ring is noticed
      EXPECT_EQ(walk_from(python, leaf, 4096).walk.stop, WalkStop::kCycle) << length;
    }
  }
}

TEST_P(WalkOf, AMisalignedFrameIsNone) {
  const Address main = python.draw_stack("main@2");
  for (std::uint64_t shift = 1; shift < 8; ++shift) {
    EXPECT_EQ(stop_from(offset_by(main, shift)), WalkStop::kMisaligned);
    EXPECT_EQ(stop_from(python.frame("leaf", 2, offset_by(main, shift))), WalkStop::kMisaligned);
  }
}

TEST_P(WalkOfInterpreterFrames, AnOwnerThatDoesNotExistIsDamage) {
  for (const std::uint8_t owner : {std::uint8_t{5}, std::uint8_t{0x7f}, std::uint8_t{0xff}}) {
    const Address main = python.frame("main", 2, Address{}, owner);
    EXPECT_EQ(stop_from(main), WalkStop::kBadOwner);
    EXPECT_EQ(stop_from(python.frame("leaf", 2, main)), WalkStop::kBadOwner);
  }
}

TEST_P(WalkOfInterpreterFrames, EveryOwnerFromTheFirstShimOnIsAnEntry) {
  for (std::uint8_t owner = python.layout.first_shim_owner; owner <= 4; ++owner) {
    const Address entry = python.shim(python.draw_stack("main@2"));
    python.memory.put(field(entry, python.layout.frame.owner), owner);
    EXPECT_EQ(walk_from(python, entry).frames, "main@2");
  }
}

TEST_P(WalkOf, AFrameThatCannotBeReadIsUnreadable) {
  const Address nowhere{0x666000};
  EXPECT_EQ(stop_from(nowhere), WalkStop::kUnreadable);
  EXPECT_EQ(stop_from(python.frame("leaf", 2, nowhere)), WalkStop::kUnreadable);
  EXPECT_EQ(stop_from(Address{~std::uint64_t{7}}), WalkStop::kUnreadable) << "the end of the address space";
}

TEST_P(WalkOf, EachFieldOfAFrameMayBeTheOneThatCannotBeRead) {
  std::vector<std::pair<std::uint32_t, std::size_t>> fields{{python.layout.frame.previous, 8},
                                                            {python.layout.frame.executable, 8}};
  if (python.layout.frame.owner != kNoField) fields.emplace_back(python.layout.frame.owner, 1);
  for (const auto& [offset, size] : fields) {
    const Address main = python.draw_stack("main@2");
    python.memory.erase(field(main, offset), size);
    EXPECT_EQ(stop_from(python.frame("leaf", 2, main)), WalkStop::kUnreadable) << offset;
  }
}

TEST_P(WalkOf, AThreadStateThatCannotBeReadHasNoCurrentFrame) {
  Address frame{};
  EXPECT_FALSE(current_frame(python.memory, python.layout, Address{0x666000}, frame));
  if (python.layout.frame_style != FrameStyle::kCFrame) return;
  // A _PyCFrame on a C stack that is gone, and none at all.
  const Address tstate = python.allocate();
  python.memory.put(field(tstate, python.layout.tstate.current_frame), Address{0x666000});
  EXPECT_FALSE(current_frame(python.memory, python.layout, tstate, frame));
  python.memory.put(field(tstate, python.layout.tstate.current_frame), Address{});
  EXPECT_TRUE(current_frame(python.memory, python.layout, tstate, frame));
  EXPECT_TRUE(is_null(frame));
}

// ---- entries from C that are under way ----

// A thread in `work`, from which C code is entering Python again.
class WalkOfEntries : public WalkOf {
 protected:
  // A frame that C code called from the frame `caller`: below a shim, and marked where there are no shims.
  Address entered(const std::string& name, std::int32_t offset, Address caller) {
    const bool has_shims = python.layout.version.minor >= 12;
    const Address at = python.frame(name, offset, has_shims ? python.shim(caller) : caller);
    if (!has_shims) python.memory.put(field(at, python.layout.frame.entry_mark), std::uint8_t{1});
    return at;
  }
  Seen walk_in(Address entry) {
    python.memory.put(offset_by(tstate_, python.layout.tstate.current_frame), entry);
    std::vector<PyFrame> out(64);
    Seen seen;
    seen.walk = walk_thread(python.memory, python.layout, DrawnInterpreter::kCodeType, tstate_, out);
    seen.frames = python.text(std::span(out).first(seen.walk.count));
    return seen;
  }

  const Address tstate_ = python.allocate();
  const Address root_ = python.root_entry(tstate_, Address{});
  const Address work_ = python.frame("work", 4, entered("main", 2, Address{}));
  const Address outer_ = python.cframe(work_, root_);
};

TEST_P(WalkOfEntries, AnEntryThatIsDoneIsPartOfTheStack) {
  const Seen seen = walk_in(python.cframe(python.frame("inlined", 2, entered("key", 6, work_)), outer_));
  EXPECT_EQ(seen.walk.stop, WalkStop::kComplete);
  EXPECT_FALSE(seen.walk.leaf_skipped);
  EXPECT_EQ(seen.frames, "inlined@2 key@6 work@4 main@2");
  EXPECT_EQ(walk_in(outer_).frames, "work@4 main@2");
  EXPECT_EQ(walk_in(root_).walk.count, 0U);
}

TEST_P(WalkOfEntries, WhateverLayOnTheStackIsNotBelieved) {
  // GIVEN an entry that is not filled in yet: garbage; a stack that is gone, but for a frame that lives again
  const Address ended = python.frame("ended", 4, work_);
  for (const Address left : {Address{}, Address{0x666000}, Address{0x1}, entered("stale", 6, ended)}) {
    const Seen seen = walk_in(python.cframe(left, outer_));
    // THEN the stack is that of the code that C was called from
    EXPECT_EQ(seen.walk.stop, WalkStop::kComplete);
    EXPECT_TRUE(seen.walk.leaf_skipped);
    EXPECT_EQ(seen.frames, "work@4 main@2");
  }
}

TEST_P(WalkOfEntries, AGeneratorBetweenTwoCallersHasNoStack) {
  // GIVEN a generator that is the current frame of its entry and has no caller, as while it is resumed or yields
  const Address generator = python.frame("generator", 2, Address{}, 1);
  // THEN the frames of the entry are not known, and those around it are not the stack
  EXPECT_EQ(walk_in(python.cframe(generator, outer_)).walk.stop, WalkStop::kUnlinked);
}

TEST_P(WalkOfEntries, AGeneratorIsTheOutermostFrameOnlyWhileItRuns) {
  if (python.layout.version.minor >= 12) GTEST_SKIP() << "the outermost frame is an entry's own";
  // GIVEN a generator that C code has resumed outside of any Python code
  const Address frame = python.frame("generator", 2, Address{}, 1);
  const Address generator{raw(frame) - python.layout.generator.frame};
  python.memory.put(field(frame, python.layout.frame.entry_mark), std::uint8_t{1});
  const auto walk_while = [&](std::int8_t state) {
    python.memory.put(offset_by(generator, python.layout.generator.state), static_cast<std::uint8_t>(state));
    return walk_in(python.cframe(frame, root_));
  };
  constexpr std::int8_t kExecuting = 0;
  EXPECT_EQ(walk_while(kExecuting).walk.stop, WalkStop::kComplete);
  EXPECT_EQ(walk_while(kExecuting).frames, "generator@2");
  // WHEN it rests, or has ended THEN what leads to it is left over
  for (const std::int8_t state : std::initializer_list<std::int8_t>{-2, -1, 1, 4})
    EXPECT_FALSE(is_proven(walk_while(state).walk.stop)) << int{state};
}

TEST_P(WalkOfEntries, AnEntryWithNothingAroundItIsNoEmptyStack) {
  // GIVEN the thread's first entry, not filled in yet, and no frame around it
  EXPECT_EQ(walk_in(python.cframe(Address{0x1}, root_)).walk.stop, WalkStop::kEntering);
}

TEST_P(WalkOfEntries, AGreenletThatRunsCCodeHasNoFrames) {
  // GIVEN a greenlet's own entry around C code: no frame, as none has been made in it yet
  const Address entry = python.cframe(Address{}, root_);
  const Address at_chunk = offset_by(tstate_, python.layout.tstate.chunk);
  const auto walk_with_chunk = [&](Address chunk, Address top) {
    python.memory.put(at_chunk, chunk);
    python.memory.put(offset_by(at_chunk, 8), top);
    return walk_in(entry).walk;
  };
  EXPECT_EQ(walk_with_chunk(Address{}, Address{}).stop, WalkStop::kComplete);
  EXPECT_EQ(walk_with_chunk(Address{}, Address{}).count, 0U);
  // WHEN functions of Python have been called and are through THEN likewise
  constexpr std::uint64_t kFirst = 32;
  const Address chunk = python.allocate();
  python.memory.put(chunk, Address{});
  EXPECT_EQ(walk_with_chunk(chunk, offset_by(chunk, kFirst)).stop, WalkStop::kComplete);
  // WHEN there is a frame that is about to be entered THEN that cannot be told yet
  EXPECT_EQ(walk_with_chunk(chunk, offset_by(chunk, kFirst + 80)).stop, WalkStop::kEntering);
  python.memory.put(chunk, python.allocate());
  EXPECT_EQ(walk_with_chunk(chunk, offset_by(chunk, kFirst)).stop, WalkStop::kEntering);
}

TEST_P(WalkOfEntries, FramesThatHaveBeenOverwrittenAreLeftOut) {
  // GIVEN an entry that is left over from an earlier call by the same frame, and whose inner frames are gone
  const Address gone = python.frame("gone", 2, entered("key", 6, work_));
  const Address leaf = python.frame("leaf", 2, gone);
  python.memory.put(field(gone, python.layout.frame.executable), std::uint64_t{0x4242});
  const Seen seen = walk_in(python.cframe(leaf, outer_));
  // THEN the stack is that of the code that C was called from
  EXPECT_EQ(seen.walk.stop, WalkStop::kComplete);
  EXPECT_TRUE(seen.walk.leaf_skipped);
  EXPECT_EQ(seen.frames, "work@4 main@2");
}

TEST_P(WalkOfEntries, WithoutAnyProofThereIsNoStack) {
  // GIVEN an entry that does not know the entry around it, either
  const Address stale = python.cframe(entered("stale", 6, python.frame("ended", 4, work_)), outer_);
  for (const Address outer : {Address{0x666000}, Address{}, stale})
    EXPECT_EQ(walk_in(python.cframe(Address{0x1}, outer)).walk.stop, WalkStop::kEntering);
}

TEST_P(WalkOfEntries, TheFaultIsThatOfTheNewestEntryUnlessItIsTheFirst) {
  // GIVEN frames that are none, in an entry that passes for one
  const auto damaged = [&](Address caller) {
    const Address gone = python.frame("gone", 2, entered("key", 6, caller));
    python.memory.put(field(gone, python.layout.frame.executable), std::uint64_t{0x4242});
    return python.frame("leaf", 2, gone);
  };
  // WHEN all that the newest entry says may be left over THEN it is that; the thread's own entry never is
  EXPECT_EQ(walk_in(python.cframe(Address{0x1}, python.cframe(damaged(work_), outer_))).walk.stop, WalkStop::kEntering);
  python.memory.put(offset_by(root_, python.layout.cframe.current_frame), damaged(Address{}));
  EXPECT_EQ(walk_in(root_).walk.stop, WalkStop::kNotCode);
}

TEST_P(WalkOfEntries, AnEntryTooLongToCheckPassesForSound) {
  Address frame = entered("first", 2, work_);
  for (int depth = 0; depth < 100; ++depth) frame = python.frame("again", 2, frame);
  EXPECT_EQ(walk_in(python.cframe(frame, outer_)).walk.stop, WalkStop::kTruncated);
}

std::vector<Layout> layouts_with(bool (*has)(const Layout&)) {
  std::vector<Layout> layouts = testing::all_layouts();
  std::erase_if(layouts, [&](const Layout& layout) { return !has(layout); });
  return layouts;
}
const auto name_of = [](const ::testing::TestParamInfo<Layout>& tested) { return testing::test_name(tested.param); };

INSTANTIATE_TEST_SUITE_P(Python, WalkOf, ::testing::ValuesIn(testing::all_layouts()), name_of);
INSTANTIATE_TEST_SUITE_P(Python, WalkOfInterpreterFrames, ::testing::ValuesIn(layouts_with([](const Layout& layout) {
                           return layout.frame.owner != kNoField;
                         })),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Python, WalkOfEntries, ::testing::ValuesIn(layouts_with([](const Layout& layout) {
                           return layout.frame_style == FrameStyle::kCFrame;
                         })),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Python, WalkOfPlainPointers, ::testing::ValuesIn(layouts_with([](const Layout& layout) {
                           return layout.executable_tag_mask == 0;
                         })),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Python, WalkOfTaggedPointers, ::testing::ValuesIn(layouts_with([](const Layout& layout) {
                           return layout.executable_tag_mask != 0;
                         })),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Python, WalkOfBytecodePerThread, ::testing::ValuesIn(layouts_with([](const Layout& layout) {
                           return layout.code.tlbc != kNoField;
                         })),
                         name_of);

TEST(WalkStop, EveryReasonHasWords) {
  for (std::size_t i = 0; i < kWalkStopCount; ++i) EXPECT_STRNE(text(static_cast<WalkStop>(i)), "");
  EXPECT_STREQ(text(WalkStop::kTruncated), "stack too deep");
}

}  // namespace
}  // namespace plimsoll::cpython
