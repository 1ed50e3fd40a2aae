// cli/top_state_test.cc: keys -> what is shown.
#include "cli/top_state.h"

#include <gtest/gtest.h>

namespace plimsoll::cli {
namespace {

using Kind = Key::Kind;

// Presses letters, one after another; the last answer.
TopWish type(TopState& state, std::string_view letters) {
  TopWish wish = TopWish::kGoOn;
  for (const char letter : letters) wish = press(state, {Kind::kText, std::string(1, letter)}, 10);
  return wish;
}

TEST(TopState, ShowsWhatIsAskedFor) {
  TopState state;
  type(state, "l");
  EXPECT_EQ(state.subject, TopSubject::kLines);
  type(state, "f");
  EXPECT_EQ(state.subject, TopSubject::kFlame);
  type(state, "T");
  EXPECT_EQ(state.subject, TopSubject::kThreads);
  // The same key again goes back.
  type(state, "T");
  EXPECT_EQ(state.subject, TopSubject::kFunctions);
  type(state, "t");
  EXPECT_EQ(state.sort, SortBy::kTotal);
  type(state, "s");
  EXPECT_EQ(state.sort, SortBy::kSelf);
  type(state, "w");
  EXPECT_EQ(state.time, TopTime::kWall);
}

TEST(TopState, PausesAndGoesOn) {
  TopState state;
  type(state, "p");
  EXPECT_TRUE(state.is_paused);
  type(state, " ");
  EXPECT_FALSE(state.is_paused);
}

TEST(TopState, TypesAFilterInWhichLettersAreLetters) {
  TopState state;
  EXPECT_EQ(type(state, "/qp"), TopWish::kGoOn);
  EXPECT_TRUE(state.is_typing);
  press(state, {Kind::kText, "é"}, 10);
  EXPECT_EQ(state.filter, "qpé");
  press(state, {Kind::kBackspace}, 10);
  press(state, {Kind::kEnter}, 10);
  EXPECT_FALSE(state.is_typing);
  EXPECT_EQ(state.filter, "qp");
  EXPECT_FALSE(state.is_paused);
}

TEST(TopState, TakesAFilterBackWithEscape) {
  TopState state;
  type(state, "/old");
  press(state, {Kind::kEnter}, 10);
  type(state, "/new");
  press(state, {Kind::kEscape}, 10);
  EXPECT_EQ(state.filter, "old");
  // and once more: none
  press(state, {Kind::kEscape}, 10);
  EXPECT_EQ(state.filter, "");
}

TEST(TopState, ChoosesTheWindow) {
  TopState state;
  type(state, "+");
  EXPECT_EQ(state.window_ns, 10'000'000'000);
  type(state, "----");
  EXPECT_EQ(state.window_ns, 1'000'000'000);
  type(state, "++++++++");
  EXPECT_EQ(state.window_ns, 60'000'000'000);
  state.window_ns = 7'000'000'000;  // as an option may say
  type(state, "-");
  EXPECT_EQ(state.window_ns, 5'000'000'000);
}

TEST(TopState, ScrollsAndBeginsAtTheTopOfSomethingElse) {
  TopState state;
  press(state, {Kind::kDown}, 10);
  press(state, {Kind::kPageDown}, 10);
  EXPECT_EQ(state.first_row, 11U);
  press(state, {Kind::kUp}, 10);
  EXPECT_EQ(state.first_row, 10U);
  press(state, {Kind::kPageUp}, 20);
  EXPECT_EQ(state.first_row, 0U);
  press(state, {Kind::kEnd}, 10);
  type(state, "l");
  EXPECT_EQ(state.first_row, 0U);
}

TEST(TopState, HelpGoesWithAnyKeyAndQQuits) {
  TopState state;
  type(state, "?");
  EXPECT_TRUE(state.is_help);
  type(state, "l");
  EXPECT_FALSE(state.is_help);
  EXPECT_EQ(state.subject, TopSubject::kFunctions);
  EXPECT_EQ(type(state, "q"), TopWish::kQuit);
  EXPECT_EQ(type(state, "?q"), TopWish::kQuit);
}

TEST(TopState, NamesWhatThereIsWhenAWordIsWrong) {
  EXPECT_TRUE(parse_top_subject("flame").ok());
  EXPECT_NE(parse_top_subject("flames").error().message.find("functions, lines, flame, threads"), std::string::npos);
  EXPECT_FALSE(parse_top_time("gil").ok());
  EXPECT_FALSE(parse_top_sort("up").ok());
}

}  // namespace
}  // namespace plimsoll::cli
