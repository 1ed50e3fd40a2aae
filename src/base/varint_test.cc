// base/varint_test.cc: what put_ wrote comes back, and hostile bytes fail instead of running away.
#include "base/varint.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace plimsoll {
namespace {

// Numbers around every boundary of the encoding: 0, and both sides of each power of two.
std::vector<std::uint64_t> interesting_numbers() {
  std::vector<std::uint64_t> numbers{0};
  for (unsigned bit = 0; bit < 64; ++bit)
    for (const int step : {-1, 0, 1}) numbers.push_back((std::uint64_t{1} << bit) + static_cast<std::uint64_t>(step));
  numbers.push_back(std::numeric_limits<std::uint64_t>::max());
  return numbers;
}

std::string encoded(std::uint64_t value) {
  std::string out;
  put_varint(out, value);
  return out;
}

TEST(Varint, EveryUnsignedNumberComesBack) {
  for (const std::uint64_t number : interesting_numbers()) {
    const std::string bytes = encoded(number);
    VarintCursor cursor(bytes);
    EXPECT_EQ(cursor.varint(), number);
    EXPECT_TRUE(cursor.at_end());
    EXPECT_FALSE(cursor.failed());
  }
}

TEST(Varint, EverySignedNumberComesBack) {
  for (const std::uint64_t pattern : interesting_numbers()) {
    const auto number = static_cast<std::int64_t>(pattern);
    std::string bytes;
    put_signed(bytes, number);
    VarintCursor cursor(bytes);
    EXPECT_EQ(cursor.signed_varint(), number);
    EXPECT_FALSE(cursor.failed());
  }
}

TEST(Varint, HasTheSpecifiedBytes) {
  EXPECT_EQ(encoded(0), std::string("\x00", 1));
  EXPECT_EQ(encoded(127), "\x7f");
  EXPECT_EQ(encoded(128), "\x80\x01");
  EXPECT_EQ(encoded(300), "\xac\x02");
  EXPECT_EQ(encoded(~std::uint64_t{0}), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

TEST(Varint, SmallNumbersOfEitherSignAreOneByte) {
  EXPECT_EQ(zigzag(0), 0U);
  EXPECT_EQ(zigzag(-1), 1U);
  EXPECT_EQ(zigzag(1), 2U);
  EXPECT_EQ(zigzag(-64), 127U);
  EXPECT_EQ(zigzag(std::numeric_limits<std::int64_t>::min()), ~std::uint64_t{0});
}

TEST(Varint, ByteStringsComeBackWithWhateverTheyHold) {
  // GIVEN an empty string, one with zeros and one longer than one length byte can say
  const std::vector<std::string> texts{"", std::string("a\0b", 3), std::string(1000, 'x')};
  std::string bytes;
  for (const std::string& text : texts) put_bytes(bytes, text);
  // WHEN they are read
  VarintCursor cursor(bytes);
  // THEN they are equal
  for (const std::string& text : texts) EXPECT_EQ(cursor.bytes(), text);
  EXPECT_TRUE(cursor.at_end());
  EXPECT_FALSE(cursor.failed());
}

TEST(VarintCursor, ANumberThatIsCutFails) {
  const std::string whole = encoded(~std::uint64_t{0});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    VarintCursor cursor(std::string_view(whole).substr(0, size));
    EXPECT_EQ(cursor.varint(), 0U) << size << " bytes";
    EXPECT_TRUE(cursor.failed()) << size << " bytes";
  }
}

TEST(VarintCursor, ANumberOfMoreThan64BitsFails) {
  // GIVEN ten bytes whose last one has a bit above the 64th, and eleven bytes
  const std::string too_large = std::string(9, '\xff') + "\x02";
  const std::string too_long = std::string(10, '\x80') + std::string(1, '\0');
  for (const std::string& bytes : {too_large, too_long}) {
    VarintCursor cursor(bytes);
    EXPECT_EQ(cursor.varint(), 0U);
    EXPECT_TRUE(cursor.failed());
  }
}

TEST(VarintCursor, AFailureIsForGood) {
  // GIVEN a good number behind a bad one
  const std::string bytes = std::string(11, '\xff') + encoded(7);
  VarintCursor cursor(bytes);
  // WHEN the bad one has been read
  cursor.varint();
  // THEN nothing else is
  EXPECT_EQ(cursor.varint(), 0U);
  EXPECT_EQ(cursor.signed_varint(), 0);
  EXPECT_EQ(cursor.bytes(), "");
  EXPECT_EQ(cursor.remaining(), 0U);
  EXPECT_TRUE(cursor.at_end());
  EXPECT_TRUE(cursor.failed());
}

TEST(VarintCursor, ANumberAboveItsBoundFails) {
  const std::string bytes = encoded(11);
  VarintCursor at_bound(bytes);
  EXPECT_EQ(at_bound.bounded(11), 11U);
  EXPECT_FALSE(at_bound.failed());
  VarintCursor above(bytes);
  EXPECT_EQ(above.bounded(10), 0U);
  EXPECT_TRUE(above.failed());
}

TEST(VarintCursor, ACountNeverExceedsTheBytesThatFollowIt) {
  // GIVEN a count of 3 with two bytes and with three bytes behind it
  VarintCursor too_few(std::string_view("\x03xy", 3));
  VarintCursor enough(std::string_view("\x03xyz", 4));
  // THEN only the second is believed
  EXPECT_EQ(too_few.count(), 0U);
  EXPECT_TRUE(too_few.failed());
  EXPECT_EQ(enough.count(), 3U);
  EXPECT_FALSE(enough.failed());
}

TEST(VarintCursor, ByteStringsLongerThanTheInputFail) {
  for (const std::string& bytes : {encoded(1), encoded(~std::uint64_t{0}) + "abc", std::string("\x04xyz")}) {
    VarintCursor cursor(bytes);
    EXPECT_EQ(cursor.bytes(), "");
    EXPECT_TRUE(cursor.failed());
  }
}

}  // namespace
}  // namespace plimsoll
