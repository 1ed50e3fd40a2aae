#include "capture/loop_calls.h"

#include <gtest/gtest.h>

#include <string>

#include "memory/copied.h"

namespace plimsoll::capture {
namespace {

using cpython::PyFrame;
using cpython::WalkStop;
using native::UnwindStop;

constexpr std::uint64_t kStack = 0x10000;
constexpr std::uint64_t kFrameSize = 128;

// A stack, innermost frame first: 'L' is a call of the interpreter's loop, and so is a lower-case letter, whose caller
// keeps that Python frame; any other letter is some other function.
struct FakeStack {
  explicit FakeStack(const std::string& kinds) : words(kinds.size() * kFrameSize / 8 + 16) {
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const bool is_loop = kinds[i] == 'L' || std::islower(static_cast<unsigned char>(kinds[i])) != 0;
      frames.push_back({Address{is_loop ? 0x400010U : 0x500010U}, Address{kStack + (i + 1) * kFrameSize}});
      if (is_loop && kinds[i] != 'L') words[((i + 1) * kFrameSize + 16) / 8] = static_cast<std::uint64_t>(kinds[i]);
    }
  }

  // The chain of Python frames as letters and the machine code by the numbers of its frames, outwards.
  std::string interleaved(const std::string& chain, UnwindStop stop = UnwindStop::kComplete,
                          WalkStop python_stop = WalkStop::kComplete) const {
    const native::RulePool pool;
    const native::ModuleMap modules({}, pool, {{0x400000, 0x400100}});
    const memory::CopiedMemory memory(Address{kStack}, std::as_bytes(std::span(words)));
    RawNative head;
    head.stack_pointer = Address{kStack};
    head.count = static_cast<std::uint32_t>(frames.size());
    head.stop = stop;
    if (!chain.empty())
      head.leaf = find_leaf(memory, modules, frames, Address{static_cast<std::uint64_t>(chain.front())});
    std::vector<PyFrame> walked;
    for (const char letter : chain) walked.push_back({Address{static_cast<std::uint64_t>(letter)}, 0, 0});
    std::vector<StackItem> items;
    if (!interleave_by_calls({head, frames}, modules, walked, python_stop, items)) return "unmatched";
    std::string text;
    for (const StackItem& item : items)
      text += item.kind == StackItem::Kind::kPython ? chain[item.index] : static_cast<char>('0' + item.index);
    return text;
  }

  std::vector<native::NativeFrame> frames;
  std::vector<std::uint64_t> words;
};

TEST(LoopCalls, TheNthCallOfTheLoopRunsTheNthFrame) { EXPECT_EQ(FakeStack("CaCCbcC").interleaved("abc"), "0a23bc6"); }

TEST(LoopCalls, ACallThatHasJustBegunHasNoFrameYet) {
  // GIVEN three calls and two frames, the innermost of which the second call runs
  EXPECT_EQ(FakeStack("LCaCbC").interleaved("ab"), "1a3b5");
  EXPECT_EQ(FakeStack("CLCaCbC").interleaved("ab"), "02a4b6");
}

TEST(LoopCalls, CallsFurtherOutMayBelongToOthers) {
  // GIVEN the stack of a greenlet: its own two calls, and beyond where it began two of its parent's
  EXPECT_EQ(FakeStack("CaCbCLLC").interleaved("ab"), "0a2b4567");
  // AND the same while a call has just begun
  EXPECT_EQ(FakeStack("LaCbCLC").interleaved("ab"), "a2b456");
}

TEST(LoopCalls, WhatTheUnwindingDidNotReachIsFurtherOut) {
  EXPECT_EQ(FakeStack("CaCb").interleaved("abcd", UnwindStop::kNoRule), "0a2bcd");
  EXPECT_EQ(FakeStack("LCaC").interleaved("abcd", UnwindStop::kNoRule), "1a3bcd");
}

TEST(LoopCalls, BeyondACutOffChainNothingIsKnown) {
  EXPECT_EQ(FakeStack("CaCbCcC").interleaved("ab", UnwindStop::kComplete, WalkStop::kTruncated), "0a2b");
}

TEST(LoopCalls, CountsThatDisagreeAreNotBelieved) {
  // GIVEN a call too few for the frames, or nobody who keeps the innermost frame
  EXPECT_EQ(FakeStack("CaC").interleaved("ab"), "unmatched");
  EXPECT_EQ(FakeStack("CLCL").interleaved("ab"), "unmatched");
  EXPECT_EQ(FakeStack("CLCLCL").interleaved("ab"), "unmatched");
}

TEST(LoopCalls, ThreadsWithoutPythonAreLeftAsTheyAre) {
  EXPECT_EQ(FakeStack("CCC").interleaved(""), "012");
  EXPECT_EQ(FakeStack("CLC").interleaved(""), "012");
}

}  // namespace
}  // namespace plimsoll::capture
