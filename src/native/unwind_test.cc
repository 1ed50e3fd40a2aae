#include "native/unwind.h"

#include <gtest/gtest.h>

#include "native/unwind_testing.h"

namespace plimsoll::native {
namespace {

using testing::Drawing;
using testing::Frames;
using testing::functions;
using testing::kStack;
using testing::Section;

TEST(Unwind, GoesFromAFrameToItsCallerToTheThreadsBeginning) {
  Drawing drawing(functions());
  // GIVEN a leaf, called by a function with 32 bytes of its own, called by one with a frame pointer at 96
  drawing.code(0, 0x108).code(40, 0x208).code(104, 0x305).word(96, 0);
  // WHEN it is unwound THEN each frame is there, with the call that it is in, and with where its part of the stack ends
  EXPECT_EQ(drawing.from(0x4, kStack + 96).stop, UnwindStop::kComplete);
  EXPECT_EQ(drawing.frames, (Frames{{0x4, 8}, {0x107, 48}, {0x207, 112}, {0x304, 0}}));
}

TEST(Unwind, BelievesAReturnAddressToBeOfTheCallBeforeIt) {
  Drawing drawing(functions());
  // GIVEN a call that is the last instruction of its function: it would return to where the next one begins
  drawing.code(0, 0x310);
  EXPECT_EQ(drawing.from(0x4).stop, UnwindStop::kComplete);
  EXPECT_EQ(drawing.frames, (Frames{{0x4, 8}, {0x30f, 0}}));
}

TEST(Unwind, FindsASavedFramePointerBesideTheStackPointer) {
  Drawing drawing(functions());
  // GIVEN a function that keeps rbp at rsp + 16, whose caller needs it
  drawing.word(16, kStack + 96).code(24, 0x208).code(104, 0x305).word(96, 0);
  EXPECT_EQ(drawing.from(0x604, 1).stop, UnwindStop::kComplete);
  EXPECT_EQ(drawing.frames, (Frames{{0x604, 32}, {0x207, 112}, {0x304, 0}}));
}

TEST(Unwind, DoesWithThePlaceAloneUntilAFramePointerIsNeededThatNobodySaved) {
  // GIVEN a function with a frame pointer, called by a thread's first
  Drawing saved(functions());
  saved.known = Known::kPlaceOnly;
  saved.word(16, kStack + 96).code(24, 0x208).code(104, 0x305).word(96, 0);
  // WHEN what it has called saved the frame pointer THEN the way out is known
  EXPECT_EQ(saved.from(0x604, 1).stop, UnwindStop::kComplete);
  EXPECT_EQ(saved.frames, (Frames{{0x604, 32}, {0x207, 112}, {0x304, 0}}));
  // AND if it did not, what happens to be in the register is not believed
  Drawing lost(functions());
  lost.known = Known::kPlaceOnly;
  lost.code(0, 0x208).code(104, 0x305).word(96, 0);
  EXPECT_EQ(lost.from(0x4, kStack + 96).stop, UnwindStop::kRegister);
  EXPECT_EQ(lost.frames, (Frames{{0x4, 8}, {0x207, 0}}));
  EXPECT_EQ(lost.from(0x504).stop, UnwindStop::kRegister);
}

TEST(Unwind, SaysWhereNoRuleIs) {
  Drawing drawing(functions());
  drawing.code(0, 0x408);
  EXPECT_EQ(drawing.from(0x4).stop, UnwindStop::kNoRule);
  EXPECT_EQ(drawing.frames, (Frames{{0x4, 8}, {0x407, 0}}));
}

TEST(Unwind, MakesNoFrameOfAnAddressThatIsNoCode) {
  Drawing drawing(functions());
  drawing.word(0, 0xdead0000);
  EXPECT_EQ(drawing.from(0x4).stop, UnwindStop::kNoModule);
  EXPECT_EQ(drawing.frames, (Frames{{0x4, 8}}));
}

TEST(Unwind, KeepsAFrameOfCodeThatIsOfNoFile) {
  Drawing drawing(functions());
  drawing.word(0, 0x900010);
  EXPECT_EQ(drawing.from(0x4).stop, UnwindStop::kNoTable);
  EXPECT_EQ(drawing.frames, (Frames{{0x4, 8}, {0x90000f - Section::kCode, 0}}));
}

#if defined(__x86_64__)
// Code of no file.
constexpr std::uint64_t kTrampoline = 0x900010, kInTrampoline = kTrampoline - 1 - Section::kCode;

TEST(Unwind, GoesOutOfATrampolineByTheInstructionsThatItHasLeft) {
  struct Case {
    const char* what;
    std::uint64_t instructions;  // as bytes from where the call returns to; the first one is the lowest
    std::uint64_t size;          // of the frame, with the return address
  };
  for (const Case& each : {Case{"add rsp, 8; ret", 0xc308c48348, 16}, Case{"pop rbp; ret", 0xc35d, 16},
                           Case{"pop rbx; pop r12; ret", 0xc35c415b, 24}, Case{"ret", 0xc3, 8}}) {
    Drawing drawing(functions());
    // GIVEN a leaf, called by a trampoline, that by a thread's first function
    drawing.word(0, kTrampoline).at(kTrampoline, each.instructions).word(8, 0).code(each.size, 0x305);
    // WHEN it is unwound THEN what the trampoline will do says where its caller is
    EXPECT_EQ(drawing.from(0x4).stop, UnwindStop::kComplete) << each.what;
    EXPECT_EQ(drawing.frames, (Frames{{0x4, 8}, {kInTrampoline, 8 + each.size}, {0x304, 0}})) << each.what;
  }
  // GIVEN code that does anything else before it returns, or leaves the stack THEN nothing is guessed
  for (const std::uint64_t instructions : {std::uint64_t{0xc390}, std::uint64_t{0xc35c}, std::uint64_t{0x08c48348}}) {
    Drawing drawing(functions());
    drawing.word(0, kTrampoline).at(kTrampoline, instructions).code(8, 0x305);
    EXPECT_EQ(drawing.from(0x4).stop, UnwindStop::kNoTable);
  }
}

TEST(Unwind, GoesOutOfATrampolineByTheFramePointerThatItPutsBack) {
  for (const std::uint64_t instructions : {std::uint64_t{0xc3c9}, std::uint64_t{0xc35dec8948}}) {  // leave; mov and pop
    Drawing drawing(functions());
    // GIVEN one with a frame pointer at 32, whose caller has one at 96
    drawing.word(0, kTrampoline).at(kTrampoline, instructions).word(32, kStack + 96).code(40, 0x208);
    drawing.code(104, 0x305).word(96, 0);
    EXPECT_EQ(drawing.from(0x4, kStack + 32).stop, UnwindStop::kComplete);
    EXPECT_EQ(drawing.frames, (Frames{{0x4, 8}, {kInTrampoline, 48}, {0x207, 112}, {0x304, 0}}));
  }
}
#endif

TEST(Unwind, NeedsARegisterThatOnlyTheInnermostFrameHas) {
  Drawing drawing(functions());
  drawing.code(0, 0x508);
  EXPECT_EQ(drawing.from(0x4).stop, UnwindStop::kRegister);
}

TEST(Unwind, EndsWhereTheStackCannotBeRead) {
  Drawing drawing(functions());
  EXPECT_EQ(drawing.from(0x4).stop, UnwindStop::kUnreadable);
  EXPECT_EQ(drawing.frames, (Frames{{0x4, 0}}));
}

TEST(Unwind, EndsWhereFramesDoNotLeadOutwards) {
  Drawing drawing(functions());
  // GIVEN a frame pointer that points below the stack pointer
  drawing.code(0, 0x208);
  EXPECT_EQ(drawing.from(0x4, kStack - 64).stop, UnwindStop::kStuck);
}

TEST(Unwind, EndsWhenThereIsNoMoreRoom) {
  Drawing drawing(functions());
  for (std::uint64_t offset = 0; offset < 64; offset += 8) drawing.code(offset, 0x4);
  drawing.limit = 3;
  EXPECT_EQ(drawing.from(0x4).stop, UnwindStop::kTruncated);
  EXPECT_EQ(drawing.frames.size(), 3U);
}

TEST(PlainStep, IsTheSameAsItsRuleWhereItIsPlain) {
  int plain = 0;
  for (const std::uint8_t base : {kStackPointer, kFramePointer, std::uint8_t{3}})
    for (const std::int32_t offset : {-8, 0, 4, 8, 16, 4096, 65528, 65536})
      for (const auto saved :
           {Rule::Saved::kSame, Rule::Saved::kAtCfa, Rule::Saved::kAtStackPointer, Rule::Saved::kLost})
        for (const std::int32_t place : {-16, -8, -12, 8, -65528, -65536, 0}) {
          Rule rule;
          rule.kind = Rule::Kind::kRegister;
          rule.base = base;
          rule.offset = offset;
          rule.frame_pointer = saved;
          rule.frame_pointer_offset = place;
          const PlainStep step(rule, 77);
          EXPECT_FALSE(step.is_none());
          EXPECT_LT(step.bits(), 1U << PlainStep::kBits);
          if (!step.is_plain()) continue;
          ++plain;
          EXPECT_EQ(step.is_by_frame_pointer(), base == kFramePointer);
          EXPECT_EQ(step.offset(), static_cast<std::uint64_t>(offset));
          EXPECT_EQ(step.saved(), saved == Rule::Saved::kSame ? 0U : static_cast<std::uint64_t>(-place));
        }
  // By two registers, at four distances, and the frame pointer in its register (7 rows) or at one of three places.
  EXPECT_EQ(plain, 2 * 4 * (7 + 3));
}

TEST(PlainStep, NamesTheRuleWhereItIsNot) {
  const PlainStep step(Rule::cannot(UnwindStop::kNoRule), 65535);
  EXPECT_FALSE(step.is_plain() || step.is_none());
  EXPECT_FALSE(PlainStep(Rule::cannot(UnwindStop::kNoModule), 0).is_none());
  EXPECT_TRUE(PlainStep().is_none());
}

}  // namespace
}  // namespace plimsoll::native
