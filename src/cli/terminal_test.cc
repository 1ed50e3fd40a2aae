// cli/terminal_test.cc: colours and widths in all surroundings.
#include "cli/terminal.h"

#include <gtest/gtest.h>

namespace plimsoll::cli {
namespace {

Environment terminal() {
  Environment environment;
  environment.is_tty = true;
  environment.tty_columns = 100;
  environment.term = "xterm-256color";
  return environment;
}

TEST(WantsColor, WhereAPersonIsWatching) {
  EXPECT_TRUE(wants_color(ColorChoice::kAuto, terminal()));
  EXPECT_FALSE(wants_color(ColorChoice::kAuto, Environment{}));
}

TEST(WantsColor, NotOnADumbTerminalNorAgainstNoColor) {
  Environment dumb = terminal();
  dumb.term = "dumb";
  EXPECT_FALSE(wants_color(ColorChoice::kAuto, dumb));
  Environment refused = terminal();
  refused.no_color = "1";
  EXPECT_FALSE(wants_color(ColorChoice::kAuto, refused));
  refused.no_color = "";  // empty = not set
  EXPECT_TRUE(wants_color(ColorChoice::kAuto, refused));
}

TEST(WantsColor, InAPipeIfForced) {
  Environment pipe;
  pipe.force_color = "1";
  EXPECT_TRUE(wants_color(ColorChoice::kAuto, pipe));
  pipe.force_color = "0";
  EXPECT_FALSE(wants_color(ColorChoice::kAuto, pipe));
}

TEST(WantsColor, RanksTheOptionAboveTheVariablesAndPythonsOwnAboveTheOthers) {
  Environment environment = terminal();
  environment.no_color = "1";
  EXPECT_TRUE(wants_color(ColorChoice::kAlways, environment));
  environment.python_colors = "1";
  EXPECT_TRUE(wants_color(ColorChoice::kAuto, environment));
  EXPECT_FALSE(wants_color(ColorChoice::kNever, environment));
}

TEST(OutputWidth, TakesColumnsThenTheTerminalThenADefault) {
  Environment environment = terminal();
  EXPECT_EQ(output_width(environment), 100U);
  environment.columns = "70";
  EXPECT_EQ(output_width(environment), 70U);
  environment.columns = "wide";
  EXPECT_EQ(output_width(environment), 100U);
  environment.tty_columns = 0;
  EXPECT_EQ(output_width(environment), 80U);
  EXPECT_GT(output_width(Environment{}), 10'000U) << "a pipe has no width";
}

TEST(OutputWidth, KeepsRoomForTheNumbers) {
  Environment environment;
  environment.columns = "3";
  EXPECT_EQ(output_width(environment), 40U);
}

TEST(Paint, AddsNothingWithoutColors) {
  EXPECT_EQ(Paint(false)(Style::kHot, "x"), "x");
  EXPECT_EQ(Paint(true)(Style::kPlain, "x"), "x");
  EXPECT_EQ(Paint(true)(Style::kHot, "x"), "\x1b[1;31mx\x1b[0m");
}

TEST(ParseColor, SuggestsTheWordThatWasMeant) {
  EXPECT_TRUE(parse_color("always").ok());
  const Result<ColorChoice> result = parse_color("allways");
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("did you mean \"always\"?"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::cli
