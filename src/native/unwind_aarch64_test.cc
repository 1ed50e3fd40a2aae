// What is different on aarch64, where a call leaves the return address in x30. tools/test_aarch64.sh runs it.
#include <gtest/gtest.h>

#include "native/unwind_testing.h"

namespace plimsoll::native {
namespace {

using testing::Drawing;
using testing::Frames;
using testing::kStack;
using testing::Section;

constexpr std::uint64_t kSignature = 0x00b3'0000'0000'0000;  // of pointer authentication

// At 0 a function that has nothing on the stack, at 0x100 one with `stp x29, x30, [sp, #-32]!`, at 0x200 one whose
// frame pointer is set, too, at 0x300 where threads begin, at 0x400 one that saves x30 alone, at 0x600 one with 64 KiB
// of frame.
Section functions() {
  Section section;
  section.common("def_cfa sp 0")
      .function(0, 0x10, "")
      .function(0x100, 0x10, "cfa_offset 32; offset x29 -32; offset x30 -24")
      .function(0x200, 0x10, "def_cfa x29 48; offset x29 -48; offset x30 -40")
      .function(0x300, 0x10, "undefined x30")
      .function(0x400, 0x10, "cfa_offset 16; offset x30 -16")
      .function(0x600, 0x10, "cfa_offset 65552; offset x29 -16; offset x30 -8");
  return section;
}

// Where the code at an offset returns to.
void set_link(Drawing& drawing, std::uint64_t offset) {
  drawing.others.value[kReturnAddress] = Section::kCode + offset;
}

TEST(UnwindAarch64, GoesFromAFunctionWithNothingOnTheStackToTheThreadsBeginning) {
  Drawing drawing(functions());
  // GIVEN a leaf, called by a function with 32 bytes of frame, by one with a frame pointer, by a thread's first
  set_link(drawing, 0x108);
  drawing.word(0, kStack + 64).code(8, 0x208).word(64, 0).code(72, 0x308);
  // WHEN it is unwound THEN each frame is there, with where its part of the stack ends: the leaf's is empty
  EXPECT_EQ(drawing.from(0x4).stop, UnwindStop::kComplete);
  EXPECT_EQ(drawing.frames, (Frames{{0x4, 0}, {0x107, 32}, {0x207, 112}, {0x307, 0}}));
}

TEST(UnwindAarch64, TakesSignaturesOffReturnAddresses) {
  Drawing drawing(functions());
  // GIVEN a program that is compiled with pointer authentication
  drawing.others.value[kReturnAddress] = (Section::kCode + 0x108) | kSignature;
  drawing.word(0, kStack + 64)
      .word(8, (Section::kCode + 0x408) | kSignature)
      .word(32, (Section::kCode + 0x308) | kSignature);
  EXPECT_EQ(drawing.from(0x4).stop, UnwindStop::kComplete);
  EXPECT_EQ(drawing.frames, (Frames{{0x4, 0}, {0x107, 32}, {0x407, 48}, {0x307, 0}}));
}

TEST(UnwindAarch64, BelievesTheRegisterOfTheInnermostFrameOnly) {
  Drawing drawing(functions());
  // GIVEN a function that returns into one that has saved nothing, which cannot have called it
  set_link(drawing, 0x8);
  EXPECT_EQ(drawing.from(0x4).stop, UnwindStop::kRegister);
  EXPECT_EQ(drawing.frames, (Frames{{0x4, 0}, {0x7, 0}}));
}

TEST(UnwindAarch64, HasARuleForAReturnAddressThatIsSavedAlone) {
  Drawing drawing(functions());
  drawing.code(0, 0x308);
  EXPECT_EQ(drawing.from(0x404).stop, UnwindStop::kComplete);
  EXPECT_EQ(drawing.frames, (Frames{{0x404, 16}, {0x307, 0}}));
}

TEST(UnwindAarch64, HasARuleForALargeFrame) {
  Drawing drawing(functions());
  drawing.word(65536, 0).code(65544, 0x308);
  EXPECT_EQ(drawing.from(0x604).stop, UnwindStop::kComplete);
  EXPECT_EQ(drawing.frames, (Frames{{0x604, 65552}, {0x307, 0}}));
}

TEST(UnwindAarch64, ReadsProgramsThatSignReturnAddresses) {
  // GIVEN what compilers write for paciasp; stp x29, x30, [sp, #-16]!: the state of the return address changes (0x2d)
  Section section;
  section.common("def_cfa sp 0")
      .function(0x100, 0x10, "advance 4; bytes 2d; advance 4; cfa_offset 16; offset x29 -16; offset x30 -8")
      .function(0x300, 0x10, "undefined x30");
  Drawing drawing(section);
  drawing.word(0, 0).word(8, (Section::kCode + 0x308) | kSignature);
  EXPECT_EQ(drawing.from(0x108).stop, UnwindStop::kComplete);
  EXPECT_EQ(drawing.frames, (Frames{{0x108, 16}, {0x307, 0}}));
}

TEST(UnwindAarch64, GoesThroughASignalThatNoTableTellsOf) {
  Drawing drawing(functions());
  // GIVEN a handler, which returns to the kernel's code (mov x8, #139; svc #0), which no table knows
  constexpr std::uint64_t kReturn = 0x500;
  drawing.at(Section::kCode + kReturn, 0xd4000001d2801168);
  set_link(drawing, kReturn);
  // and what the kernel has put on the stack: a leaf was interrupted, with its own stack pointer and x30
  constexpr std::uint64_t kContext = kContextOfSignal;
  for (std::uint8_t number = 0; number < kRegisters; ++number)
    drawing.word(kContext + place_in_context(number), number);
  drawing.code(kContext + place_in_context(kReturnAddress), 0x308);
  drawing.word(kContext + place_in_context(kStackPointer), kStack + 0x2000);
  drawing.code(kContext + place_of_pc_in_context(), 0x8);
  EXPECT_EQ(drawing.from(0x4).stop, UnwindStop::kComplete);
  EXPECT_EQ(drawing.frames, (Frames{{0x4, 0}, {kReturn - 1, 0x2000}, {0x8, 0x2000}, {0x307, 0}}));
}

TEST(UnwindAarch64, HasPlainStepsWhereX29AndX30AreSavedTogether) {
  Rule rule;
  rule.kind = Rule::Kind::kRegister;
  rule.offset = 32;
  rule.frame_pointer = Rule::Saved::kAtCfa;
  rule.frame_pointer_offset = -32;
  rule.return_offset = -24;
  const PlainStep step(rule, 77);
  EXPECT_TRUE(step.is_plain());
  EXPECT_EQ(step.saved(), 32U);
  EXPECT_EQ(step.return_place(), 24U);
  EXPECT_LT(step.bits(), 1U << PlainStep::kBits);
  rule.return_offset = -8;
  EXPECT_FALSE(PlainStep(rule, 77).is_plain());
  rule.frame_pointer_offset = -8;
  rule.return_offset = 0;  // in its register
  EXPECT_FALSE(PlainStep(rule, 77).is_plain());
}

}  // namespace
}  // namespace plimsoll::native
