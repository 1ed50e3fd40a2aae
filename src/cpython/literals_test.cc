// cpython/literals_test.cc: numbers and texts as repr writes them. What is expected is what Python has printed.
#include "cpython/literals.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace plimsoll::cpython {
namespace {

TEST(Literals, FloatsAreThoseOfRepr) {
  EXPECT_EQ(float_literal(0.0), "0.0");
  EXPECT_EQ(float_literal(-0.0), "-0.0");
  EXPECT_EQ(float_literal(0.1), "0.1");
  EXPECT_EQ(float_literal(100000.0), "100000.0");
  EXPECT_EQ(float_literal(1e15), "1000000000000000.0");
  EXPECT_EQ(float_literal(1e16), "1e+16");
  EXPECT_EQ(float_literal(0.0001), "0.0001");
  EXPECT_EQ(float_literal(0.00001), "1e-05");
  EXPECT_EQ(float_literal(5e-324), "5e-324");
  EXPECT_EQ(float_literal(1.7976931348623157e308), "1.7976931348623157e+308");
  EXPECT_EQ(float_literal(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(float_literal(std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(Literals, ComplexNumbersAreThoseOfRepr) {
  EXPECT_EQ(complex_literal(1, 2), "(1+2j)");
  EXPECT_EQ(complex_literal(0, 2), "2j");
  EXPECT_EQ(complex_literal(-0.0, -1.5), "(-0-1.5j)");
}

TEST(Literals, IntsOfAnySize) {
  EXPECT_EQ(int_literal({}, false), "0");
  const std::array<std::uint32_t, 1> small{42};
  EXPECT_EQ(int_literal(small, true), "-42");
  const std::array<std::uint32_t, 4> power{0, 0, 0, 1};  // 2**90
  EXPECT_EQ(int_literal(power, false), "1237940039285380274899124224");
  const std::array<std::uint32_t, 2> billion{1'000'000'000 & 0x3fffffff, 0};  // with zeros that must not be lost
  EXPECT_EQ(int_literal(billion, false), "1000000000");
}

TEST(Literals, TextsHaveTheQuotesAndEscapesOfRepr) {
  EXPECT_EQ(text_literal("it's"), "\"it's\"");
  EXPECT_EQ(text_literal("it's \"so\""), "'it\\'s \"so\"'");
  EXPECT_EQ(text_literal("a\n\x1b\\\x7f"), "'a\\n\\x1b\\\\\\x7f'");
  EXPECT_EQ(text_literal("gr\xc3\xbc\xc3\x9f\x65"), "'gr\xc3\xbc\xc3\x9f\x65'");
  EXPECT_EQ(text_literal("\xc2\x85"), "'\\x85'");
  // A lone surrogate is a byte of a file name that is no text; U+D7FB, U+F900 are characters.
  EXPECT_EQ(text_literal("\xed\xb2\x80\xed\xb3\xbf"), "'\\udc80\\udcff'");
  EXPECT_EQ(text_literal("\xed\x9f\xbb\xef\xa4\x80"), "'\xed\x9f\xbb\xef\xa4\x80'");
  EXPECT_EQ(text_literal("\xed\xb2"), "'\xed\xb2'");
  EXPECT_EQ(bytes_literal(std::string_view("\0\xff'a", 4)), "b\"\\x00\\xff'a\"");
}

TEST(Literals, CharactersThatNobodySeesAreEscapedAsByRepr) {
  // GIVEN a no-break space, a soft hyphen, a space without width, an override of direction and an end of line
  EXPECT_EQ(text_literal("a\xc2\xa0\xc2\xad"), "'a\\xa0\\xad'");
  EXPECT_EQ(text_literal("\xe2\x80\x8b\xe2\x80\xae\xe2\x80\xa8z"), "'\\u200b\\u202e\\u2028z'");
  // AND characters of private use, and a tag THEN none is taken for nothing, or for a space
  EXPECT_EQ(text_literal("\xee\x80\x80\xf4\x8f\xbf\xbf\xf3\xa0\x81\x81"), "'\\ue000\\U0010ffff\\U000e0041'");
  // AND those beside them are as they are
  EXPECT_EQ(text_literal("\xc2\xa1\xc2\xae\xe2\x80\x90\xe2\x80\xb0"), "'\xc2\xa1\xc2\xae\xe2\x80\x90\xe2\x80\xb0'");
}

}  // namespace
}  // namespace plimsoll::cpython
