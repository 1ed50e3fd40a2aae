// capture/last_stack_test.cc: stacks come out as they went in, whatever of them was written.
#include "capture/last_stack.h"

#include <gtest/gtest.h>

#include <random>

namespace plimsoll::capture {
namespace {

using Stack = std::vector<cpython::PyFrame>;

cpython::PyFrame frame(std::uint64_t code, std::int32_t position) { return {Address{code * 16}, position, 0}; }

bool operator==(const Stack& a, const Stack& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const cpython::PyFrame& x, const cpython::PyFrame& y) {
    return x.code == y.code && x.position == y.position && x.reserved == y.reserved;
  });
}

// A thread's ticks on one side, and who reads their records on the other.
class Ticks {
 public:
  explicit Ticks(std::size_t slots, ThreadSerial thread = ThreadSerial{1}) : last_(slots), thread_(thread) {}

  struct Record {
    RawSample raw;
    Stack inner;
  };
  Record write(const Stack& stack) {
    const std::span<cpython::PyFrame> room = last_.room();
    std::copy(stack.begin(), stack.end(), room.begin());
    Record record;
    record.raw.thread = thread_;
    record.raw.stack = RawSample::Stack::kOnLast;
    record.raw.frame_count = static_cast<std::uint32_t>(stack.size());
    record.raw.same_outer = static_cast<std::uint32_t>(last_.same_outer(stack.size()));
    record.inner.assign(stack.begin(), stack.end() - record.raw.same_outer);
    return record;
  }
  void keep(const Stack& stack) { last_.keep(stack.size()); }
  Record tick(const Stack& stack) {
    Record record = write(stack);
    keep(stack);
    return record;
  }

 private:
  LastStack last_;
  ThreadSerial thread_;
};

Stack whole(LastStacks& stacks, const Ticks::Record& record) {
  std::span<const cpython::PyFrame> found;
  EXPECT_TRUE(stacks.complete(record.raw, record.inner, found));
  return {found.begin(), found.end()};
}

TEST(LastStack, OnlyWhatIsNewIsWritten) {
  Ticks ticks(8);
  LastStacks stacks;
  const Stack deep{frame(3, 10), frame(2, 20), frame(1, 30)};
  const Stack moved{frame(3, 12), frame(2, 20), frame(1, 30)};
  const Stack deeper{frame(4, 0), frame(3, 12), frame(2, 20), frame(1, 30)};
  const Stack other{frame(2, 22), frame(1, 30)};
  const std::pair<Stack, std::size_t> steps[] = {{deep, 3},  {deep, 0}, {moved, 1}, {deeper, 1},
                                                 {other, 1}, {{}, 0},   {deep, 3}};
  for (const auto& [stack, written] : steps) {
    const Ticks::Record record = ticks.tick(stack);
    EXPECT_EQ(record.inner.size(), written);
    EXPECT_TRUE(whole(stacks, record) == stack);
  }
}

TEST(LastStack, AFrameAtAnotherPlaceIsAnotherAndSoIsAllInsideOfIt) {
  // GIVEN the same function at the bottom, and then another line of the outermost
  Ticks ticks(8);
  LastStacks stacks;
  whole(stacks, ticks.tick({frame(2, 1), frame(1, 1)}));
  // WHEN the outermost has gone on THEN the inner one, though it looks the same, is written again
  EXPECT_EQ(ticks.tick({frame(2, 1), frame(1, 2)}).inner.size(), 2U);
}

TEST(LastStack, ARecordThatFoundNoRoomIsNotBuiltUpon) {
  Ticks ticks(8);
  LastStacks stacks;
  const Stack first{frame(2, 1), frame(1, 1)};
  const Stack lost{frame(3, 1), frame(1, 9)};
  EXPECT_TRUE(whole(stacks, ticks.tick(first)) == first);
  // GIVEN a record that was dropped
  ticks.write(lost);
  // WHEN the next is as the first THEN it is built on the first
  const Ticks::Record next = ticks.tick(first);
  EXPECT_EQ(next.inner.size(), 0U);
  EXPECT_TRUE(whole(stacks, next) == first);
}

TEST(LastStack, AnyRowOfStacksComesOutAsItWentIn) {
  std::mt19937 random(2026);
  constexpr std::size_t kSlots = 30;
  Ticks threads[] = {Ticks(kSlots, ThreadSerial{1}), Ticks(kSlots, ThreadSerial{2})};
  Stack now[2];
  LastStacks stacks;
  for (int step = 0; step < 20'000; ++step) {
    const std::size_t which = random() % 2;
    Stack& stack = now[which];
    for (std::size_t ends = random() % 4; ends > 0 && !stack.empty(); --ends) stack.erase(stack.begin());
    for (std::size_t calls = random() % 4; calls > 0 && stack.size() < kSlots; --calls)
      stack.insert(stack.begin(), frame(random() % 3, static_cast<std::int32_t>(random() % 2)));
    const Ticks::Record record = threads[which].write(stack);
    if (random() % 8 == 0) continue;  // dropped
    threads[which].keep(stack);
    ASSERT_TRUE(whole(stacks, record) == stack) << "step " << step;
  }
}

TEST(LastStack, WhatIsNotKnownIsNotBuiltUpon) {
  // GIVEN a record on top of a stack, of whose thread nothing is known any more
  Ticks ticks(8);
  LastStacks stacks;
  const Stack stack{frame(2, 1), frame(1, 1)};
  whole(stacks, ticks.tick(stack));
  const Ticks::Record next = ticks.tick(stack);
  stacks.forget(ThreadSerial{1});
  // WHEN it is completed THEN it is refused
  std::span<const cpython::PyFrame> found;
  EXPECT_FALSE(stacks.complete(next.raw, next.inner, found));
}

}  // namespace
}  // namespace plimsoll::capture
