#include "capture/call_tree.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <future>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "capture/sampler_testing.h"

namespace plimsoll::capture {
namespace {

using testing::FakeFrame;
using testing::FakeFunction;

// A thread of Python code, and the tree that it is asked for its stacks by.
class CallTreeTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kMaxDepth = 100;

  CallTreeTest() : created_(CpuSampler::create({}, testing::Sampling::interpreter(), ring_, *seen_)) {
    sampler_ = created_.take();
    tree_ = std::make_unique<CallTree>(testing::Sampling::interpreter(), *sampler_, *seen_, kMaxDepth, nullptr);
  }

  static std::string text_of(Address code, std::ptrdiff_t position) {
    return " " + std::to_string(raw(code)) + ":" + std::to_string(position / FakeFunction::kBytesPerLine);
  }
  // What a node stands for: functions and lines, outermost first.
  std::string text_of(CallNode node) {
    tree_->take_new(new_);
    nodes_.insert(nodes_.end(), new_.begin(), new_.end());
    std::string text;
    for (; node != 0; node = nodes_[node - 1].parent) {
      const CallNodeInfo& info = nodes_[node - 1];
      if (info.kind == CallNodeInfo::Kind::kTruncated) text.insert(0, "...");
      if (info.kind == CallNodeInfo::Kind::kFrame) text.insert(0, text_of(info.frame.code, info.frame.position));
    }
    return text;
  }
  static std::string text_of(const FakeFrame* frame) {
    std::string text;
    for (; frame != nullptr; frame = frame->previous)
      if (frame->owner < 3)
        text.insert(0, text_of(address_of(frame->code), frame->instruction - frame->code->bytecode));
    return text;
  }

  SampleRing ring_ = SampleRing::create(std::size_t{1} << 20U).take();
  std::unique_ptr<SeenFilter> seen_ = std::make_unique<SeenFilter>();
  Result<std::unique_ptr<CpuSampler>> created_;
  std::unique_ptr<CpuSampler> sampler_;
  std::unique_ptr<CallTree> tree_;
  GrowingArray<CallNodeInfo> new_;
  std::vector<CallNodeInfo> nodes_;
};

TEST_F(CallTreeTest, FindsEachStackOfAProgramThatCallsAndReturns) {
  // GIVEN functions, and frames in a stack of memory that is used again and again, some of entries from C
  const std::array<FakeFunction, 3> functions{FakeFunction("one"), FakeFunction("two"), FakeFunction("three")};
  const FakeFunction entry("entry");  // code of CPython's own
  std::array<FakeFrame, 40> memory{};
  std::size_t depth = 1;
  memory[0] = functions[0].frame(0);
  testing::RunsPython thread(memory.data());
  std::mt19937 random(7);
  std::map<std::string, CallNode> met;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> stack_of_key;
  const KeyFinder find_key = tree_->key_finder();
  // WHEN it calls, returns and goes on, often by the same ways
  for (int i = 0; i < 30'000; ++i) {
    const auto choice = random() % 8;
    FakeFrame& top = memory[depth - 1];
    if (choice < 3 && depth < memory.size()) {
      const bool is_entry = random() % 8 == 0;
      memory[depth] = (is_entry ? entry : functions[random() % functions.size()]).frame(8 * (random() % 3), &top);
      if (is_entry) memory[depth].owner = 3;
      ++depth;
    } else if (choice < 6 && depth > 1) {
      --depth;
    } else {
      top.instruction = top.code->bytecode + 2 * (random() % (i % 100 == 0 ? 30 : 10));
    }
    thread.go_to(&memory[depth - 1]);
    if (i % 7 == 0) continue;  // nobody asks
    // THEN each time the tree says which stack it is
    StackKey key = i % 5 != 0 ? find_key() : StackKey{};
    const CallNode node = tree_->stack_of(key);
    const std::string expected = text_of(&memory[depth - 1]);
    ASSERT_EQ(text_of(node), expected) << i;
    met.try_emplace(expected, node);
    // AND its key, if it has one, is no other's; it has one from the second time on
    ASSERT_TRUE(i < 20 || i % 5 == 0 || !key.is_none()) << i;
    if (key.is_none()) continue;
    ASSERT_EQ(stack_of_key.try_emplace({key.at, key.below}, expected).first->second, expected) << i;
  }
  EXPECT_LE(stack_of_key.size(), met.size() * 10);  // as instructions and entries from C are in keys, and not in texts
  // AND a stack has its number for good
  memory[0] = functions[0].frame(0);
  thread.go_to(memory.data());
  const CallNode first = tree_->stack_of_caller();
  EXPECT_EQ(met[text_of(memory.data())], first);
}

TEST_F(CallTreeTest, OfAThreadThatHasEndedNothingIsKept) {
  // GIVEN many threads, one after the other, each of which is met
  std::array<CallNode, 3> nodes{};
  for (CallNode& node : nodes) {
    std::thread([&] {
      node = tree_->stack_of_caller();
      EXPECT_EQ(tree_->stack_of_caller(), node);
      EXPECT_EQ(tree_->threads_kept(), 1U);
    }).join();
    // WHEN it has ended THEN what was for it alone is gone
    EXPECT_EQ(tree_->threads_kept(), 0U);
  }
  // AND stacks stay what they were
  for (const CallNode node : nodes) EXPECT_EQ(text_of(node), "");
  // AND a thread may end when the tree is gone
  std::promise<void> is_met;
  std::promise<void> is_gone;
  std::thread last([&] {
    (void)tree_->stack_of_caller();
    is_met.set_value();
    is_gone.get_future().wait();
  });
  is_met.get_future().wait();
  tree_.reset();
  is_gone.set_value();
  last.join();
}

TEST_F(CallTreeTest, AFrameInTheSamePlaceIsAnotherWhereItsCallerWentOn) {
  // GIVEN a function that calls another
  const FakeFunction outer("outer"), inner("inner");
  FakeFrame caller = outer.frame(4);
  const FakeFrame callee = inner.frame(8, &caller);
  testing::RunsPython thread(&callee);
  const CallNode first = tree_->stack_of_caller();
  // WHEN it calls it again from its next line, and the frame is in the same memory with the same contents
  caller.instruction = caller.code->bytecode + FakeFunction::kBytesPerLine;
  const CallNode second = tree_->stack_of_caller();
  // THEN that is another stack; and when it is back in the first place, it is the first
  EXPECT_NE(first, second);
  caller.instruction = caller.code->bytecode + 4;
  EXPECT_EQ(tree_->stack_of_caller(), first);
}

TEST_F(CallTreeTest, ARecursionByTwoCallsOnALineHasAStackForEachDepth) {
  // GIVEN a function that calls itself from two instructions of a line
  const FakeFunction function("make");
  constexpr std::size_t kDepth = 8;
  std::array<FakeFrame, kDepth> frames{};
  const KeyFinder find_key = tree_->key_finder();
  // WHEN it is asked for on all ways that there are, by key or not
  std::map<std::size_t, CallNode> node_of_depth;
  for (std::uint32_t ways = 0; ways < 1U << kDepth; ++ways)
    for (std::size_t depth = 0; depth < kDepth; ++depth) {
      frames[depth] = function.frame((ways >> depth & 1U) != 0 ? 4 : 10, depth == 0 ? nullptr : &frames[depth - 1]);
      testing::RunsPython thread(&frames[depth]);
      StackKey key = ways % 3 != 0 ? find_key() : StackKey{};
      const CallNode node = tree_->stack_of(key);
      // THEN how deep it is is all that counts
      ASSERT_EQ(node_of_depth.try_emplace(depth, node).first->second, node) << ways << " " << depth;
    }
  EXPECT_EQ(node_of_depth.size(), kDepth);
  tree_->take_new(new_);
  EXPECT_EQ(new_.size(), kDepth + 1);  // and the thread
  // AND an instruction of the next line is another
  frames[3].instruction = frames[3].code->bytecode + FakeFunction::kBytesPerLine;
  testing::RunsPython thread(&frames[kDepth - 1]);
  EXPECT_NE(tree_->stack_of_caller(), node_of_depth[kDepth - 1]);
}

TEST_F(CallTreeTest, ACodeObjectInThePlaceOfADeadOneIsAnother) {
  // GIVEN a function that was met
  FakeFunction function("first");
  const FakeFrame frame = function.frame(4);
  testing::RunsPython thread(&frame);
  const CallNode before = tree_->stack_of_caller();
  EXPECT_EQ(tree_->stack_of_caller(), before);
  const KeyFinder find_key = tree_->key_finder();
  const StackKey key_before = find_key();
  EXPECT_FALSE(key_before.is_none());
  // WHEN its code object dies, and its memory becomes another's
  seen_->note_death(function.address());
  function.become("second");
  // THEN its stacks are others, and have no key before they have been asked for
  EXPECT_TRUE(find_key().is_none());
  EXPECT_NE(tree_->stack_of_caller(), before);
  const StackKey key = find_key();
  EXPECT_FALSE(key.is_none() || key == key_before);
}

TEST_F(CallTreeTest, ACodeObjectIsAnotherHoweverManyHaveDiedInItsPlace) {
  // GIVEN stacks of a function that were met, of which one is too deep
  FakeFunction function("first");
  std::deque<FakeFrame> frames;
  for (std::size_t i = 0; i < kMaxDepth + 1; ++i)
    frames.push_back(function.frame(4, frames.empty() ? nullptr : &frames.back()));
  testing::RunsPython thread(&frames.front());
  const CallNode before = tree_->stack_of_caller();
  thread.go_to(&frames[kMaxDepth]);
  const CallNode deep_before = tree_->stack_of_caller();
  // WHEN very many code objects have been in its place, and died
  for (std::uint32_t i = 0; i < std::uint32_t{1} << 16U; ++i) seen_->note_death(function.address());
  function.become("second");
  // THEN the stacks of the next one are others
  EXPECT_NE(tree_->stack_of_caller(), deep_before);
  thread.go_to(&frames.front());
  EXPECT_NE(tree_->stack_of_caller(), before);
}

TEST_F(CallTreeTest, AFrameThatIsHalfMadeIsLeftOutAndGivesTheStackNoKey) {
  // GIVEN a function that calls, and a frame of what is no code object yet
  const FakeFunction outer("outer"), inner("inner");
  const FakeFrame caller = outer.frame(4);
  FakeFrame half_made = inner.frame(8, &caller);
  const auto code = half_made.code;
  half_made.code = reinterpret_cast<decltype(half_made.code)>(&half_made);
  testing::RunsPython thread(&caller);
  const KeyFinder find_key = tree_->key_finder();
  const CallNode of_caller = tree_->stack_of_caller();
  // WHEN it is asked for THEN the stack is the caller's
  thread.go_to(&half_made);
  StackKey key = find_key();
  EXPECT_EQ(tree_->stack_of(key), of_caller);
  EXPECT_TRUE(key.is_none());
  // AND once it is made, its own
  half_made.code = code;
  key = find_key();
  EXPECT_EQ(text_of(tree_->stack_of(key)), text_of(&half_made));
  EXPECT_FALSE(key.is_none());
}

TEST_F(CallTreeTest, OfStacksThatAreTooDeepTheInnermostFramesAreKept) {
  // GIVEN a recursion that is deeper than what is kept
  const FakeFunction function("recursive");
  std::deque<FakeFrame> frames;
  for (std::size_t i = 0; i < kMaxDepth + 20; ++i)
    frames.push_back(function.frame(4, frames.empty() ? nullptr : &frames.back()));
  testing::RunsPython thread(&frames[kMaxDepth - 1]);
  EXPECT_EQ(text_of(tree_->stack_of_caller()), text_of(&frames[kMaxDepth - 1]));
  // WHEN it goes a frame too deep THEN the outermost is missing, and that is said
  thread.go_to(&frames[kMaxDepth]);
  const std::string truncated = text_of(tree_->stack_of_caller());
  EXPECT_EQ(truncated, "..." + text_of(&frames[kMaxDepth - 1]));
  EXPECT_EQ(text_of(tree_->stack_of_caller()), truncated);
  // AND when it is back, all of it is there
  thread.go_to(&frames[10]);
  EXPECT_EQ(text_of(tree_->stack_of_caller()), text_of(&frames[10]));
}

}  // namespace
}  // namespace plimsoll::capture
