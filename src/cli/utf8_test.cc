// cli/utf8_test.cc: hostile and wide texts on a terminal.
#include "cli/utf8.h"

#include <gtest/gtest.h>

namespace plimsoll::cli {
namespace {

TEST(Printable, LeavesOrdinaryTextAlone) { EXPECT_EQ(printable("größe = λ(x) # 日本"), "größe = λ(x) # 日本"); }

TEST(Printable, LetsNoEscapeSequenceThrough) {
  EXPECT_EQ(printable("\x1b[31mred"), "␛[31mred");
  EXPECT_EQ(printable("a\nb\rc\td\x7f"), "a␊b␍c d␡");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\xef\xbf\xbd"
            "31m");  // the one-character form of ESC [
}

TEST(Printable, LetsNoDirectionOverrideThrough) {
  EXPECT_EQ(printable("a\u202eb\u2066c"),
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd"
            "c");
}

TEST(Printable, ReplacesEveryInvalidByte) {
  EXPECT_EQ(printable("\xff"
                      "a"),
            "\xef\xbf\xbd"
            "a");
  EXPECT_EQ(printable("\xe2\x82"), "\xef\xbf\xbd\xef\xbf\xbd");  // cut short
  EXPECT_EQ(printable("\xc0\xaf"), "\xef\xbf\xbd\xef\xbf\xbd");  // overlong
  EXPECT_EQ(printable("\xed\xa0\x80").size(), 9U);               // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80").size(), 12U);          // past the last character
}

TEST(DisplayWidth, CountsCells) {
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("größe"), 5U);
  EXPECT_EQ(display_width("日本"), 4U);
  EXPECT_EQ(display_width("e\u0301"), 1U);
  EXPECT_EQ(display_width("├─ x"), 4U);
}

TEST(Cut, KeepsTheStartOrTheEnd) {
  EXPECT_EQ(cut_right("abcdef", 6), "abcdef");
  EXPECT_EQ(cut_right("abcdef", 4), "abc…");
  EXPECT_EQ(cut_left("abcdef", 4), "…def");
  EXPECT_EQ(cut_right("abcdef", 0), "");
  EXPECT_EQ(cut_left("abcdef", 0), "");
}

TEST(Cut, NeverSplitsACharacter) {
  EXPECT_EQ(cut_right("日本語", 4), "日…");
  EXPECT_EQ(cut_left("日本語", 4), "…語");
}

}  // namespace
}  // namespace plimsoll::cli
