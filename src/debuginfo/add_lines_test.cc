#include "debuginfo/add_lines.h"

#include <gtest/gtest.h>

#include "debuginfo/inlined_testing.h"

namespace plimsoll::debuginfo {
namespace {

using profile::Frame;
using profile::Function;
using profile::FunctionKind;
using profile::Profile;

// A Python function that called an instruction of this program, in a function whose symbol is known or is not.
Profile recorded(const std::string& symbol, std::uint64_t address) {
  Profile profile;
  profile.threads.emplace_back();
  Function python;
  python.name = profile.strings.intern("main");
  python.file = profile.strings.intern("app.py");
  Function native;
  native.name = profile.strings.intern(symbol);
  native.file = profile.strings.intern(this_program());
  native.kind = FunctionKind::kNative;
  const FrameId outer = profile.frames.intern({profile.functions.intern(python), 7, 0});
  const FrameId inner = profile.frames.intern({profile.functions.intern(native), 0, 0, {}, address});
  const StackId root = profile.stacks.intern({StackId{}, outer});
  profile.samples.push_back(0, ThreadId{0}, profile.stacks.intern({root, inner}), 1'000'000);
  return profile;
}

std::string stack_of(const Profile& profile) {
  std::string text;
  for (const FrameId id : profile::frames_of(profile.stacks, profile.samples.stack[0])) {
    const Frame& frame = profile.frames[id];
    const Function& function = profile.functions[frame.function];
    const std::string_view source = profile.strings[function.source.is_none() ? function.file : function.source];
    text += std::string(text.empty() ? "" : " > ") + std::string(profile.strings[function.name]) + "@" +
            std::string(source.substr(source.rfind('/') + 1)) + ":" + std::to_string(frame.line) + "/" +
            std::to_string(frame.inline_depth);
  }
  return text;
}

TEST(AddLines, MakesFramesOfInlinedFunctions) {
  Profile profile = recorded("outermost", address_of_marked_instruction());
  const LinesReport report = add_lines(profile);
  EXPECT_EQ(report.frames, 1U);
  EXPECT_EQ(report.resolved, 1U);
  const auto line = [](std::uint32_t number) { return std::to_string(number); };
  EXPECT_EQ(stack_of(profile), "main@app.py:7/0 > outermost@inlined_testing.cc:" + line(kLineInOutermost) +
                                   "/0 > plimsoll::debuginfo::middle@inlined_testing.cc:" + line(kLineInMiddle) +
                                   "/1 > plimsoll::debuginfo::innermost@inlined_testing.cc:" + line(kLineInInnermost) +
                                   "/2");
  // AND a second time changes nothing
  const std::string before = stack_of(profile);
  add_lines(profile);
  EXPECT_EQ(stack_of(profile), before);
}

TEST(AddLines, NamesFunctionsThatHaveNoSymbol) {
  Profile profile = recorded("program+0x1234", address_of_marked_instruction());
  add_lines(profile);
  EXPECT_NE(stack_of(profile).find(" > plimsoll::debuginfo::outermost(int)@"), std::string::npos);
}

TEST(AddLines, LeavesWhatItCannotFind) {
  for (const std::uint64_t address : {std::uint64_t{0}, std::uint64_t{1}}) {
    Profile profile = recorded("outermost", address);
    const std::string before = stack_of(profile);
    EXPECT_EQ(add_lines(profile).resolved, 0U);
    EXPECT_EQ(stack_of(profile), before);
  }
}

TEST(AddLines, BelievesOnlyTheFileThatWasRecorded) {
  // GIVEN a profile of a file with another build-id
  Profile profile = recorded("outermost", address_of_marked_instruction());
  profile.modules.push_back({this_program(), "another"});
  const LinesReport report = add_lines(profile);
  EXPECT_EQ(report.resolved, 0U);
  ASSERT_EQ(report.problems.size(), 1U);
  EXPECT_NE(report.problems[0].find("is not the file any more"), std::string::npos);
}

TEST(AddLines, BelievesNoFileThatMayBeAnotherByNow) {
  // GIVEN a profile of a file of which no build-id is known, that ended before the file was written
  Profile profile = recorded("outermost", address_of_marked_instruction());
  profile.modules.push_back({this_program(), ""});
  profile.start_realtime_ns = 1'000'000'000;
  profile.end_ns = 1'000'000'000;
  const LinesReport report = add_lines(profile);
  // THEN it has no lines, and that is said
  EXPECT_EQ(report.resolved, 0U);
  ASSERT_EQ(report.problems.size(), 1U);
  EXPECT_NE(report.problems[0].find("has been written since"), std::string::npos);
  // but what has not been written since has them
  constexpr std::int64_t kFarFuture = 4'000'000'000'000'000'000;
  profile.start_realtime_ns = kFarFuture;
  EXPECT_EQ(add_lines(profile).resolved, 1U);
}

TEST(AddLines, BelievesNoFileThatWasSeveral) {
  // GIVEN a profile of two processes, between which a library was built anew
  Profile profile = recorded("outermost", address_of_marked_instruction());
  profile.modules.push_back({this_program(), ""});
  EXPECT_EQ(add_lines(profile).resolved, 1U);
  profile = recorded("outermost", address_of_marked_instruction());
  for (const char* build_id : {"", "another"}) profile.modules.push_back({this_program(), build_id});
  // THEN frames of neither have lines, as they may be of the other
  const LinesReport report = add_lines(profile);
  EXPECT_EQ(report.resolved, 0U);
  ASSERT_EQ(report.problems.size(), 1U);
  EXPECT_NE(report.problems[0].find("was several files"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::debuginfo
