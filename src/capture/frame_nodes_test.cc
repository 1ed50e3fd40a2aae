#include "capture/frame_nodes.h"

#include <gtest/gtest.h>

namespace plimsoll::capture {
namespace {

TEST(FrameNodes, FindsWhatIsOnTopOfAStackHoweverMuchThatIs) {
  // GIVEN two stacks with very many frames on top of each, told apart by one word or another
  FrameNodes nodes;
  const auto words_of = [](std::uint32_t i) { return FrameWords{i / 4, i % 2 == 0 ? 100U : 200U, i / 2 % 2}; };
  const FrameNodes::Place one = nodes.add(0, {1, 1, 0}, 1);
  const FrameNodes::Place other = nodes.add(0, {2, 1, 0}, 2);
  constexpr std::uint32_t kMany = 1000;
  for (std::uint32_t i = 0; i < kMany; ++i) {
    EXPECT_EQ(nodes.find(one, words_of(i)), 0U);
    nodes.add(one, words_of(i), 1000 + i);
    nodes.add(other, words_of(i), 5000 + i);
  }
  // WHEN they are looked for, twice THEN each is found on top of its own
  for (int round = 0; round < 2; ++round)
    for (std::uint32_t i = 0; i < kMany; ++i) {
      EXPECT_EQ(nodes.number(nodes.find(one, words_of(i))), 1000 + i);
      EXPECT_EQ(nodes.number(nodes.find(other, words_of(i))), 5000 + i);
    }
  // AND what was not met there is not
  EXPECT_EQ(nodes.find(0, words_of(3)), 0U);
  EXPECT_EQ(nodes.find(one, words_of(kMany)), 0U);
  EXPECT_EQ(nodes.find(0, {2, 1, 0}), other);
  // AND one whose words are of zeros is like the others
  const FrameNodes::Place zero = nodes.add(0, {}, 3);
  EXPECT_EQ(nodes.find(0, {}), zero);
}

TEST(FrameNodes, InstructionsOfALineAreOneFrameOfACodeObject) {
  // GIVEN instructions of which it is noted where they are
  FrameNodes nodes;
  nodes.note({10, 1, 0}, 5);
  nodes.note({12, 1, 0}, 5);
  nodes.note({14, 1, 0}, 6);
  nodes.note({10, 2, 0}, 5);
  nodes.note({10, 1, 1}, 5);
  EXPECT_TRUE(nodes.is_noted({12, 1, 0}));
  EXPECT_FALSE(nodes.is_noted({16, 1, 0}));
  // WHEN one is met THEN so are those of its line
  const FrameNodes::Place met = nodes.add(0, {10, 1, 0}, 3);
  EXPECT_EQ(nodes.find(0, {12, 1, 0}), met);
  // AND no others: of other lines, of another code object, or of one that had its place before
  EXPECT_EQ(nodes.find(0, {14, 1, 0}), 0U);
  EXPECT_EQ(nodes.find(0, {10, 2, 0}), 0U);
  EXPECT_EQ(nodes.find(0, {10, 1, 1}), 0U);
  EXPECT_EQ(nodes.find(met, {10, 1, 0}), 0U);
}

TEST(FrameNodes, AGuessIsOfOneFrameOnOneStackAndHoldsUntilACodeObjectDies) {
  // GIVEN what was found of a frame
  FrameNodes nodes;
  const FrameWords words{5, 6, 0};
  nodes.guess(1, words.position) = {words.position, words.executable, 1, 7, 2, 3};
  const auto holds = [&](FrameNodes::Place below, std::uint32_t deaths, const FrameWords& wanted) {
    return nodes.guess(below, wanted.position).is(below, deaths, wanted);
  };
  EXPECT_TRUE(holds(1, 7, words));
  // WHEN anything is different THEN it does not hold
  EXPECT_FALSE(holds(2, 7, words));
  EXPECT_FALSE(holds(1, 8, words));
  EXPECT_FALSE(holds(1, 7, {4, 6, 0}));
  EXPECT_FALSE(holds(1, 7, {5, 4, 0}));
}

}  // namespace
}  // namespace plimsoll::capture
