// heap/word_stream_test.cc: words arrive in their order, each once, and what was put at once is in one piece.
#include "heap/word_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <semaphore>
#include <thread>
#include <vector>

namespace plimsoll::heap {
namespace {

enum class Taker { kWhoPuts, kThread };

// With a thread of its own, and without.
class WordStreamTest : public testing::TestWithParam<Taker> {
 protected:
  void begin(WordStream& words) const {
    if (GetParam() == Taker::kThread) words.take_beside();
  }
};

TEST_P(WordStreamTest, WordsArriveInTheirOrder) {
  // GIVEN
  std::vector<std::uint64_t> taken;
  WordStream words([&](std::span<const std::uint64_t> some) { taken.insert(taken.end(), some.begin(), some.end()); });
  begin(words);
  // WHEN more words are put than there is room for
  constexpr std::uint64_t kCount = 50 * WordStream::kPieceWords + 7;
  for (std::uint64_t i = 0; i < kCount; ++i) *words.put(1) = i;
  words.finish();
  // THEN
  ASSERT_EQ(taken.size(), kCount);
  for (std::uint64_t i = 0; i < kCount; ++i) ASSERT_EQ(taken[i], i);
}

TEST_P(WordStreamTest, WhatIsPutAtOnceIsInOnePiece) {
  // GIVEN a taker that reads records, whose first word is their length
  std::uint64_t records = 0;
  WordStream words([&](std::span<const std::uint64_t> some) {
    for (std::size_t at = 0; at < some.size(); at += some[at], ++records) {
      ASSERT_NE(some[at], 0U);
      ASSERT_LE(some[at], some.size() - at);
      ASSERT_EQ(some[at + some[at] - 1], some[at]);
    }
  });
  begin(words);
  // WHEN there are records of all lengths
  for (std::size_t length = 1; length <= WordStream::kPieceWords; length += 13)
    std::fill_n(words.put(length), length, length);
  words.finish();
  // THEN
  EXPECT_EQ(records, (WordStream::kPieceWords + 12) / 13);
}

TEST_P(WordStreamTest, AfterTheEndWordsAreTakenByWhoPutsThem) {
  // GIVEN a stream that is finished
  std::size_t taken = 0;
  WordStream words([&](std::span<const std::uint64_t> some) { taken += some.size(); });
  begin(words);
  *words.put(1) = 1;
  words.finish();
  EXPECT_EQ(taken, 1U);
  // WHEN
  *words.put(1) = 2;
  words.finish();
  words.finish();
  // THEN
  EXPECT_EQ(taken, 2U);
}

TEST_P(WordStreamTest, AFailureIsThrownAtTheEndAndNotWhereWordsArePut) {
  // GIVEN a taker that finds no memory
  int calls = 0;
  WordStream words([&](std::span<const std::uint64_t>) {
    ++calls;
    throw std::bad_alloc();
  });
  begin(words);
  // WHEN words are put THEN it is heard of when they are all there
  for (std::size_t i = 0; i < 50 * WordStream::kPieceWords; ++i) *words.put(1) = i;
  EXPECT_THROW(words.finish(), std::bad_alloc);
  EXPECT_EQ(calls, 1);
}

TEST_P(WordStreamTest, WhoWouldWaitDoesSomethingElseMeanwhile) {
  // GIVEN a taker that goes on only when who puts has done something else
  std::binary_semaphore may_go_on(0);
  const std::thread::id putting = std::this_thread::get_id();
  std::size_t taken = 0;
  bool has_waited = false;
  WordStream words(
      [&](std::span<const std::uint64_t> some) {
        if (GetParam() == Taker::kThread && taken == 0) may_go_on.acquire();
        taken += some.size();
      },
      [&] {
        if (std::this_thread::get_id() != putting || has_waited) return false;
        has_waited = true;
        may_go_on.release();
        return true;
      });
  begin(words);
  // WHEN more words are put than there is room for
  constexpr std::size_t kCount = 50 * WordStream::kPieceWords;
  for (std::size_t i = 0; i < kCount; ++i) *words.put(1) = i;
  words.finish();
  // THEN it did, and all words were taken; without another thread there is nobody to wait for
  EXPECT_EQ(has_waited, GetParam() == Taker::kThread);
  EXPECT_EQ(taken, kCount);
}

TEST_P(WordStreamTest, AStreamThatNobodyFinishesThrowsNothing) {
  WordStream words([](std::span<const std::uint64_t>) { throw std::bad_alloc(); });
  begin(words);
  for (std::size_t i = 0; i < 3 * WordStream::kPieceWords; ++i) *words.put(1) = i;
}

INSTANTIATE_TEST_SUITE_P(ByWhoTakes, WordStreamTest, testing::Values(Taker::kWhoPuts, Taker::kThread));

}  // namespace
}  // namespace plimsoll::heap
