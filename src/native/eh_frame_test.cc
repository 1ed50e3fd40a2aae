#include "native/eh_frame.h"

#include <gtest/gtest.h>

#include "native/testing.h"

namespace plimsoll::native {
namespace {

using testing::Section;

constexpr const char* kAtEntry = "def_cfa rsp 8; offset rip -8";

// What the compiled section says at an offset of its code.
class Compiled {
 public:
  explicit Compiled(const Section& section) : table_(section.compile(pool_)) {}
  [[nodiscard]] const Rule& at(std::uint32_t offset) const { return pool_.rule(table_.find(offset)); }
  [[nodiscard]] const UnwindTable& table() const { return table_; }

 private:
  RulePool pool_;
  UnwindTable table_;
};

Rule by_register(std::uint8_t base, std::int32_t offset) {
  Rule rule;
  rule.kind = Rule::Kind::kRegister;
  rule.base = base;
  rule.offset = offset;
  return rule;
}

Rule with_frame_pointer(Rule rule, Rule::Saved saved, std::int32_t offset) {
  rule.frame_pointer = saved;
  rule.frame_pointer_offset = offset;
  return rule;
}

TEST(EhFrame, FollowsAFunctionFromItsFirstInstructionToItsLast) {
  // GIVEN what compilers write for push %rbp; mov %rsp,%rbp; ...; leave; ret
  const Compiled compiled(Section().common(kAtEntry).function(
      0x100, 0x20, "advance 1; cfa_offset 16; offset rbp -16; advance 3; cfa_register rbp; advance 27; def_cfa rsp 8"));
  // THEN each stretch has its rule, and what is around the function has none
  EXPECT_EQ(compiled.at(0x100), by_register(kStackPointer, 8));
  EXPECT_EQ(compiled.at(0x101), with_frame_pointer(by_register(kStackPointer, 16), Rule::Saved::kAtCfa, -16));
  EXPECT_EQ(compiled.at(0x103), compiled.at(0x101));
  EXPECT_EQ(compiled.at(0x104), with_frame_pointer(by_register(kFramePointer, 16), Rule::Saved::kAtCfa, -16));
  EXPECT_EQ(compiled.at(0x11f), with_frame_pointer(by_register(kStackPointer, 8), Rule::Saved::kAtCfa, -16));
  EXPECT_EQ(compiled.at(0xff), Rule::cannot(UnwindStop::kNoRule));
  EXPECT_EQ(compiled.at(0x120), Rule::cannot(UnwindStop::kNoRule));
}

TEST(EhFrame, ComesBackToARememberedState) {
  // GIVEN an early return in the middle of a function
  const Compiled compiled(Section().common(kAtEntry).function(
      0, 0x30, "advance 4; cfa_offset 48; advance 8; remember; cfa_offset 8; advance 1; recall"));
  EXPECT_EQ(compiled.at(0x4), by_register(kStackPointer, 48));
  EXPECT_EQ(compiled.at(0xc), by_register(kStackPointer, 8));
  EXPECT_EQ(compiled.at(0xd), by_register(kStackPointer, 48));
}

TEST(EhFrame, RestoresWhatTheCommonEntrySays) {
  const Compiled compiled(Section().common(kAtEntry).function(0, 0x10, "offset rbp -16; advance 8; restore rbp"));
  EXPECT_EQ(compiled.at(0).frame_pointer, Rule::Saved::kAtCfa);
  EXPECT_EQ(compiled.at(8).frame_pointer, Rule::Saved::kSame);
}

TEST(EhFrame, KnowsWhereAThreadBegins) {
  // GIVEN _start and clone, whose return address is nowhere
  const Compiled compiled(Section().common(kAtEntry).function(0, 0x10, "undefined rip"));
  EXPECT_EQ(compiled.at(0).kind, Rule::Kind::kOutermost);
}

TEST(EhFrame, KnowsTheFramesOfSignals) {
  const Compiled compiled(Section().common(kAtEntry, "zRS").function(0, 0x10, ""));
  EXPECT_EQ(compiled.at(0).kind, Rule::Kind::kSignal);
}

TEST(EhFrame, KnowsTheStubsOfTheLinker) {
  // GIVEN what ld writes for .plt: CFA = rsp + 8 + ((rip & 15) >= 11) * 8
  const Compiled compiled(Section().common(kAtEntry).function(0, 0x40,
                                                              "cfa_offset 16; advance 6; cfa_offset 24; advance 10; "
                                                              "cfa_expression 77088000"
                                                              "3f1a3b2a332422"));
  EXPECT_EQ(compiled.at(6), by_register(kStackPointer, 24));
  const Rule& stub = compiled.at(0x10);
  EXPECT_EQ(stub.kind, Rule::Kind::kPlt);
  EXPECT_EQ(stub.offset, 8);
  EXPECT_EQ(stub.extra, 11);
}

TEST(EhFrame, KnowsACfaThatIsKeptInMemory) {
  // GIVEN what GCC writes where it aligns the stack, and what OpenSSL's assembly does
  const Compiled compiled(Section()
                              .common(kAtEntry)
                              .function(0, 0x10, "cfa_expression 767806; expression rbp 7600")
                              .function(0x10, 0x10,
                                        "cfa_expression 7798010623"
                                        "08"));
  Rule aligned;
  aligned.kind = Rule::Kind::kLoad;
  aligned.base = kFramePointer;
  aligned.offset = -8;
  EXPECT_EQ(compiled.at(0), with_frame_pointer(aligned, Rule::Saved::kAtFramePointer, 0));
  Rule openssl;
  openssl.kind = Rule::Kind::kLoad;
  openssl.offset = 152;
  openssl.extra = 8;
  EXPECT_EQ(compiled.at(0x10), openssl);
}

TEST(EhFrame, HasNoRuleForExpressionsThatItDoesNotKnow) {
  const Compiled compiled(Section()
                              .common(kAtEntry)
                              .function(0, 0x10, "cfa_expression 77080606")  // a load of a load
                              .function(0x10, 0x10, "offset rip -16"));      // the return address is elsewhere
  EXPECT_EQ(compiled.at(0), Rule::cannot(UnwindStop::kExpression));
  EXPECT_EQ(compiled.at(0x10), Rule::cannot(UnwindStop::kExpression));
}

TEST(EhFrame, TellsFunctionsApart) {
  const Compiled compiled(Section().common(kAtEntry).function(0x40, 0x20, "").function(0x10, 0x20, ""));
  EXPECT_EQ(compiled.table().function_of(0x2f), 0x10U);
  EXPECT_EQ(compiled.table().function_of(0x41), 0x40U);
  EXPECT_EQ(compiled.at(0x3f), Rule::cannot(UnwindStop::kNoRule));
  EXPECT_EQ(compiled.at(0x40), by_register(kStackPointer, 8));
}

TEST(EhFrame, FindsEveryRowOfALongTable) {
  // GIVEN a thousand functions with a rule each of their own, over many pages of code
  Section section;
  section.common(kAtEntry);
  for (std::uint64_t i = 0; i < 1000; ++i) section.function(i * 50, 40, "cfa_offset " + std::to_string(8 * (i + 1)));
  const Compiled compiled(section);
  for (std::uint32_t offset = 0; offset < 1000 * 50; ++offset) {
    const bool is_between = offset % 50 >= 40;
    const Rule expected = is_between ? Rule::cannot(UnwindStop::kNoRule)
                                     : by_register(kStackPointer, static_cast<std::int32_t>(8 * (offset / 50 + 1)));
    ASSERT_EQ(compiled.at(offset), expected) << offset;
  }
}

TEST(EhFrame, LeavesOutWhatIsDamaged) {
  // GIVEN between two good functions: one whose program recalls what nobody remembered, one beyond the module's code,
  // one that is larger than it, one of an entry that is none
  const Compiled compiled(Section()
                              .common(kAtEntry)
                              .function(0, 0x10, "")
                              .function(0x10, 0x10, "advance 8; recall; advance 4")
                              .function(Section::kCodeSize + 16, 0x10, "")
                              .function(0x20, 2 * Section::kCodeSize, "")
                              .raw_bytes(testing::little_endian(std::uint32_t{8}) + "\x03" + std::string(7, '\0'))
                              .function(0x40, 0x10, ""));
  EXPECT_EQ(compiled.at(0), by_register(kStackPointer, 8));
  EXPECT_EQ(compiled.at(0x18), Rule::cannot(UnwindStop::kNoRule));
  EXPECT_EQ(compiled.at(0x20), Rule::cannot(UnwindStop::kNoRule));
  EXPECT_EQ(compiled.at(0x40), by_register(kStackPointer, 8));
}

TEST(EhFrame, LooksAtWhatElseThereIsToDoWhileASectionTakesLong) {
  // GIVEN sections of so many functions
  const auto calls_for = [](std::uint32_t functions) {
    Section section;
    section.common(kAtEntry);
    for (std::uint32_t i = 0; i < functions; ++i) section.function(16 * (i % 256), 0x10, "");
    RulePool pool;
    int calls = 0;
    Section::compile_bytes(section.bytes(), pool, [&calls] { ++calls; });
    return calls;
  };
  // WHEN they are compiled THEN it is called all along, and not for small ones
  EXPECT_EQ(calls_for(100), 0);
  EXPECT_EQ(calls_for(5'500), 5);
}

TEST(EhFrame, SurvivesBeingCutAtAnyByte) {
  const std::string whole = Section()
                                .common(kAtEntry)
                                .function(0, 0x10, "advance 1; cfa_offset 16; offset rbp -16")
                                .function(0x10, 0x10, "cfa_expression 767806")
                                .bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    RulePool pool;
    const UnwindTable table = Section::compile_bytes(whole.substr(0, size), pool);
    EXPECT_LE(table.rows(), 4U);
  }
}

}  // namespace
}  // namespace plimsoll::native
