// cpython/layout_test.cc: versions, and which kind of table a version gets.
#include "cpython/layout.h"

#include <gtest/gtest.h>

#include "cpython/testing.h"

namespace plimsoll::cpython {
namespace {

using testing::version_of;

TEST(Version, ReadsPyVersionHex) {
  const Version version = Version::from_hex(0x030e02f0, Version::Threading::kGil);
  EXPECT_EQ(version.major, 3U);
  EXPECT_EQ(version.minor, 14U);
  EXPECT_EQ(version.micro, 2U);
}

TEST(Version, IsShownWithATForFreeThreading) {
  EXPECT_EQ(Version::from_hex(0x030907f0, Version::Threading::kGil).text(), "3.9.7");
  EXPECT_EQ(Version::from_hex(0x030d00a1, Version::Threading::kFree).text(), "3.13.0t");
}

TEST(LayoutFromTable, KnowsWhatFramesAndPositionsAreInEachVersion) {
  struct Expected {
    unsigned minor;
    FrameStyle frames;
    PositionStyle positions;
    LineTableStyle lines;
  };
  for (const Expected& expected : {
           Expected{9, FrameStyle::kFrameObject, PositionStyle::kLastiBytes, LineTableStyle::kLnotab},
           Expected{10, FrameStyle::kFrameObject, PositionStyle::kLastiUnits, LineTableStyle::kDeltas},
           Expected{11, FrameStyle::kCFrame, PositionStyle::kInstruction, LineTableStyle::kLocations},
           Expected{12, FrameStyle::kCFrame, PositionStyle::kInstruction, LineTableStyle::kLocations},
       }) {
    const Result<Layout> layout = layout_from_table(version_of(expected.minor));
    ASSERT_TRUE(layout.ok());
    EXPECT_EQ(layout.value().version.minor, expected.minor);
    EXPECT_EQ(layout.value().frame_style, expected.frames);
    EXPECT_EQ(layout.value().position_style, expected.positions);
    EXPECT_EQ(layout.value().line_table_style, expected.lines);
  }
}

TEST(LayoutFromTable, RefusesOtherVersionsInWords) {
  for (const Version& version : {Version{3, 8, 18}, Version{3, 13, 0}, Version{2, 7, 18}, Version{4, 11, 0},
                                 version_of(12, Version::Threading::kFree)}) {
    const Result<Layout> layout = layout_from_table(version);
    ASSERT_FALSE(layout.ok()) << version.text();
    EXPECT_EQ(layout.error().kind, ErrorKind::kUnsupported);
    EXPECT_EQ(layout.error().message,
              "Python " + version.text() + " is not supported: Plimsoll knows CPython 3.9 to 3.15");
  }
}

TEST(FindLayout, TakesTheTableUpTo312WithoutLookingAtTheRuntime) {
  const memory::FakeMemory nothing;
  const Result<Layout> layout = find_layout(nothing, version_of(12), Address{});
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout.value().version.minor, 12U);
}

TEST(FindLayout, ReadsTheDebugOffsetsFrom313) {
  // GIVEN a runtime that starts with its debug offsets
  memory::FakeMemory memory;
  memory.put_bytes(Address{0x5000}, testing::offsets_3_14().bytes());
  // WHEN its layout is looked for
  const Result<Layout> layout = find_layout(memory, version_of(14), Address{0x5000});
  // THEN it is what they say
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout.value().version.text(), "3.14.10");
  EXPECT_EQ(layout.value().tstate.current_frame, 72U);
}

TEST(FindLayout, SaysThatTheRuntimeCannotBeRead) {
  const memory::FakeMemory nothing;
  for (const Address runtime : {Address{}, Address{0x5000}}) {
    const Result<Layout> layout = find_layout(nothing, version_of(13), runtime);
    ASSERT_FALSE(layout.ok());
    EXPECT_NE(layout.error().message.find("_PyRuntime"), std::string::npos) << layout.error().message;
  }
}

}  // namespace
}  // namespace plimsoll::cpython
