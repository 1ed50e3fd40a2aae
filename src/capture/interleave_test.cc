#include "capture/interleave.h"

#include <gtest/gtest.h>

#include <string>

namespace plimsoll::capture {
namespace {

using cpython::PyFrame;
using cpython::WalkStop;
using native::UnwindStop;

// A stack of frames of machine code of 16 bytes each, from address 0x1000 on, innermost first; one Python frame is
// written as a letter, an entry as the number of the frame of machine code that it is in (* for one on no stack).
// The result names machine code by its numbers.
std::string interleaved(std::size_t native_frames, const std::string& python, UnwindStop stop = UnwindStop::kComplete,
                        WalkStop python_stop = WalkStop::kComplete) {
  std::vector<native::NativeFrame> frames;
  for (std::size_t i = 0; i < native_frames; ++i)
    frames.push_back({Address{0x400000 + i}, Address{0x1000 + 16 * (i + 1)}});
  if (!frames.empty()) frames.back().cfa = Address{};  // as of the outermost, or of one without a rule
  std::vector<PyFrame> walked;
  for (const char letter : python) {
    PyFrame frame{Address{static_cast<std::uint64_t>(letter)}, 0, 0};
    if (letter == '*') frame = {Address{0x7fff0000}, cpython::kEntryMark, 0};
    if (letter >= '0' && letter <= '9')
      frame = {Address{0x1008 + 16 * static_cast<std::uint64_t>(letter - '0')}, cpython::kEntryMark, 0};
    walked.push_back(frame);
  }
  RawNative head;
  head.stack_pointer = Address{0x1000};
  head.count = static_cast<std::uint32_t>(native_frames);
  head.stop = stop;
  std::vector<StackItem> items;
  if (!interleave({head, frames}, walked, python_stop, items)) return "unmatched";
  std::string text;
  for (const StackItem& item : items)
    text += item.kind == StackItem::Kind::kPython ? python[item.index] : static_cast<char>('0' + item.index);
  return text;
}

TEST(Interleave, PutsPythonWhereItsLoopIs) {
  // GIVEN Python frames a and b in the loop of machine frame 2, and c in that of 5
  EXPECT_EQ(interleaved(8, "ab2c5"), "01ab34c67");
}

TEST(Interleave, PutsTheInnermostPythonFrameFirstIfItsLoopRuns) { EXPECT_EQ(interleaved(4, "ab0"), "ab123"); }

TEST(Interleave, LeavesThreadsWithoutPythonAsTheyAre) {
  EXPECT_EQ(interleaved(3, ""), "012");
  EXPECT_EQ(interleaved(0, ""), "");
}

TEST(Interleave, IgnoresTheMarkAroundEverything) {
  // GIVEN 3.15's frame at the base of a thread state, which is no entry
  EXPECT_EQ(interleaved(4, "a1*"), "0a23");
}

TEST(Interleave, RefusesAnEntryThatIsNowhere) {
  EXPECT_EQ(interleaved(4, "a1b*"), "unmatched");
  EXPECT_EQ(interleaved(4, "a2b1"), "unmatched");
  EXPECT_EQ(interleaved(4, "a1b"), "unmatched");
}

TEST(Interleave, PutsWhatTheUnwindingDidNotReachFurtherOut) {
  // GIVEN an unwinding that ended at frame 3, and entries in 1 and in 6
  EXPECT_EQ(interleaved(4, "a1b6", UnwindStop::kNoRule), "0a23b");
  EXPECT_EQ(interleaved(4, "a1b6c8", UnwindStop::kNoRule), "0a23bc");
}

TEST(Interleave, SaysNothingOfWhatCalledAStackThatIsCutOff) {
  EXPECT_EQ(interleaved(6, "a1bc", UnwindStop::kComplete, WalkStop::kTruncated), "0abc");
}

TEST(Interleave, KeepsAnEntryWhoseFramesAreGone) {
  // GIVEN an entry that has just been made: no frame is in it yet; its loop is not shown as machine code
  EXPECT_EQ(interleaved(5, "0a2"), "1a34");
}

}  // namespace
}  // namespace plimsoll::capture
