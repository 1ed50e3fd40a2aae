// cli/units_test.cc: quantities to text and back.
#include "cli/units.h"

#include <gtest/gtest.h>

namespace plimsoll::cli {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(FormatTime, KeepsThreeDigitsInTheUnitThatFits) {
  EXPECT_EQ(format_time(0), "0 s");
  EXPECT_EQ(format_time(812), "812 ns");
  EXPECT_EQ(format_time(45'300), "45.3 µs");
  EXPECT_EQ(format_time(1'234'000), "1.23 ms");
  EXPECT_EQ(format_time(7'410'000'000), "7.41 s");
  EXPECT_EQ(format_time(99 * kSecond), "99.0 s");
}

TEST(FormatTime, NeverRoundsUpToAThousandOfAUnit) {
  EXPECT_EQ(format_time(999'400), "999 µs");
  EXPECT_EQ(format_time(999'700), "1.00 ms");
  EXPECT_EQ(format_time(999'999'999), "1.00 s");
}

TEST(FormatTime, TurnsToMinutesAndHours) {
  EXPECT_EQ(format_time(125 * kSecond), "2 min 05 s");
  EXPECT_EQ(format_time(12'000 * kSecond), "3 h 20 min");
  EXPECT_EQ(format_time(-1'500'000), "-1.50 ms");
}

TEST(FormatBytes, UsesPowersOfAThousand) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(12'345), "12.3 kB");
  EXPECT_EQ(format_bytes(1'950'000'000), "1.95 GB");
}

TEST(FormatCount, GroupsDigitsByThree) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(12'340), "12,340");
  EXPECT_EQ(format_count(1'000'000), "1,000,000");
}

TEST(FormatPercent, DoesNotCallALittleNothing) {
  EXPECT_EQ(format_percent(0), "0.0");
  EXPECT_EQ(format_percent(0.01), "<0.1");
  EXPECT_EQ(format_percent(60.12), "60.1");
}

TEST(FormatRate, ShowsHertzUpToTenThousand) {
  EXPECT_EQ(format_rate(99.84), "100 Hz");
  EXPECT_EQ(format_rate(12.34), "12.3 Hz");
  EXPECT_EQ(format_rate(998.2), "998 Hz");
  EXPECT_EQ(format_rate(10'000), "10.0 kHz");
}

TEST(FormatDate, IsUniversalTime) { EXPECT_EQ(format_date(1'767'323'045'000'000'000), "2026-01-02 03:04:05 UTC"); }

TEST(PercentOf, OfNothingIsNothing) {
  EXPECT_EQ(percent_of(5, 0), 0);
  EXPECT_EQ(percent_of(1, 4), 25);
}

TEST(TimeScale, KeepsOneUnitForAColumn) {
  const TimeScale seconds(12'340'000'000);
  EXPECT_EQ(seconds.unit(), "s");
  EXPECT_EQ(seconds.format(7'410'000'000), "7.410");
  EXPECT_EQ(seconds.format(12'000'000), "0.012");
  EXPECT_EQ(seconds.format(0), "·");
  const TimeScale milliseconds(319'700'000);
  EXPECT_EQ(milliseconds.unit(), "ms");
  EXPECT_EQ(milliseconds.format(4'000'000), "4.00");
}

TEST(Bar, GrowsInEighthsOfACell) {
  EXPECT_EQ(bar(0, 4), "");
  EXPECT_EQ(bar(1, 4), "████");
  EXPECT_EQ(bar(0.5, 4), "██");
  EXPECT_EQ(bar(0.53125, 4), "██▏");
}

TEST(Bar, ShowsWhatIsNotNothingAndNoMoreThanAll) {
  EXPECT_EQ(bar(0.0001, 4), "▏");
  EXPECT_EQ(bar(17, 4), "████");
}

TEST(ParseTime, TakesSecondsAndUnits) {
  EXPECT_EQ(parse_time("1.5", "--from").value(), 1'500'000'000);
  EXPECT_EQ(parse_time("1.5s", "--from").value(), 1'500'000'000);
  EXPECT_EQ(parse_time("200ms", "--from").value(), 200'000'000);
  EXPECT_EQ(parse_time("50us", "--from").value(), 50'000);
  EXPECT_EQ(parse_time("50µs", "--from").value(), 50'000);
  EXPECT_EQ(parse_time("10 ns", "--from").value(), 10);
  EXPECT_EQ(parse_time("2min", "--from").value(), 120 * kSecond);
  EXPECT_EQ(parse_time("1h", "--from").value(), 3600 * kSecond);
}

TEST(ParseTime, RefusesWhatIsNoTime) {
  for (const std::string_view text : {"", "s", "fast", "1.5 parsec", "-1", "1e400", "1e3", "nan", "inf", "1.5s x"}) {
    const Result<std::int64_t> result = parse_time(text, "--from");
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_EQ(result.error().kind, ErrorKind::kUsage);
    EXPECT_EQ(result.error().message.substr(0, 8), "--from: ") << result.error().message;
  }
}

TEST(Units, BytesAreReadWithUnitsOf1024And1000) {
  EXPECT_EQ(parse_bytes("4096", "--alloc").value(), 4096);
  EXPECT_EQ(parse_bytes("512K", "--alloc").value(), 512 << 10);
  EXPECT_EQ(parse_bytes("512KiB", "--alloc").value(), 512 << 10);
  EXPECT_EQ(parse_bytes("64kB", "--alloc").value(), 64'000);
  EXPECT_EQ(parse_bytes("1.5M", "--alloc").value(), 3 << 19);
  for (const char* bad : {"", "K", "-1", "12x", "1e3", "99999999999G"})
    EXPECT_FALSE(parse_bytes(bad, "--alloc").ok()) << bad;
}

TEST(Units, AColumnOfBytesHasOneUnit) {
  const TimeScale scale(12'345'678, Quantity::kBytes);
  EXPECT_EQ(scale.unit(), "MB");
  EXPECT_EQ(scale.format(12'345'678), "12.346");
}

}  // namespace
}  // namespace plimsoll::cli
