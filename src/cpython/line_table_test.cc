// cpython/line_table_test.cc: line tables against CPython's own reading of them, and tables that nobody wrote.
#include "cpython/line_table.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "cpython/line_table_cases.h"

namespace plimsoll::cpython {
namespace {

using testing::LineTableCase;

std::string from_hex(const std::string& text) {
  std::istringstream words(text);
  std::string bytes;
  for (std::string word; words >> word;) bytes.push_back(static_cast<char>(std::stoi(word, nullptr, 16)));
  return bytes;
}

LineTableStyle style_of(const std::string& version) {
  if (version == "3.9") return LineTableStyle::kLnotab;
  return version == "3.10" ? LineTableStyle::kDeltas : LineTableStyle::kLocations;
}

// Places in the form of LineTableCase::places.
std::string places_of(const LineTableCase& known) {
  const std::string table = from_hex(known.table);
  std::string text;
  Location last;
  for (std::int32_t offset = 0; offset < known.size; offset += 2) {
    const Location at = locate(style_of(known.version), table, known.first_line, offset);
    if (offset != 0 && at == last) continue;
    last = at;
    if (!text.empty()) text += " ";
    text += std::to_string(offset) + "=" + std::to_string(at.line) + ":" + std::to_string(at.column);
  }
  return text;
}

constexpr LineTableStyle kStyles[] = {LineTableStyle::kLnotab, LineTableStyle::kDeltas, LineTableStyle::kLocations};

class LineTable : public ::testing::TestWithParam<LineTableCase> {};

TEST_P(LineTable, IsReadAsCPythonReadsIt) { EXPECT_EQ(places_of(GetParam()), GetParam().places); }

TEST_P(LineTable, KnowsTheMiddleOfAnInstructionToo) {
  const std::string table = from_hex(GetParam().table);
  const LineTableStyle style = style_of(GetParam().version);
  for (std::int32_t offset = 0; offset < GetParam().size; offset += 2)
    EXPECT_EQ(locate(style, table, GetParam().first_line, offset),
              locate(style, table, GetParam().first_line, offset + 1));
}

TEST_P(LineTable, GivesTheFirstLineBeforeTheFirstInstructionAndWhereThePositionIsUnknown) {
  const std::string table = from_hex(GetParam().table);
  const auto first = static_cast<std::uint32_t>(GetParam().first_line);
  for (const std::int32_t position : {-2, -1, INT32_MIN})
    EXPECT_EQ(locate(style_of(GetParam().version), table, GetParam().first_line, position), (Location{first, 0}));
}

TEST_P(LineTable, CutBetweenEntriesKnowsWhatStandsBeforeTheCutAndNoMore) {
  const std::string table = from_hex(GetParam().table);
  const LineTableStyle style = style_of(GetParam().version);
  if (style == LineTableStyle::kLnotab) return;  // there, what stands behind the last entry is on the last line
  for (std::size_t size = 0; size < table.size(); ++size) {
    const bool is_between = style == LineTableStyle::kDeltas ? size % 2 == 0 : (table[size] & 0x80) != 0;
    bool was_cut = false;
    for (std::int32_t offset = 0; offset < GetParam().size; offset += 2) {
      const Location whole = locate(style, table, GetParam().first_line, offset);
      const Location cut = locate(style, std::string_view(table).substr(0, size), GetParam().first_line, offset);
      if (!is_between) continue;
      was_cut = was_cut || cut != whole;
      EXPECT_EQ(cut, was_cut ? Location{} : whole) << size << " bytes, offset " << offset;
    }
  }
}

TEST_P(LineTable, WithAnyByteDamagedIsReadWithoutHarm) {
  const std::string table = from_hex(GetParam().table);
  for (std::size_t at = 0; at < table.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = table;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      for (const LineTableStyle style : kStyles)
        for (const std::int32_t offset : {0, GetParam().size / 2, GetParam().size, INT32_MAX})
          EXPECT_LE(locate(style, damaged, GetParam().first_line, offset).line, std::uint32_t{INT32_MAX});
    }
}

INSTANTIATE_TEST_SUITE_P(Of, LineTable, ::testing::ValuesIn(testing::kLineTableCases), [](const auto& tested) {
  std::string name = std::string(tested.param.function) + "_" + tested.param.version;
  name.replace(name.find('.'), 1, "_");
  return name;
});

TEST(LineTableOfNobody, EmptyTellsNothing) {
  EXPECT_EQ(locate(LineTableStyle::kLnotab, "", 7, 4), (Location{7, 0})) << "3.9: all of it is the first line";
  EXPECT_EQ(locate(LineTableStyle::kDeltas, "", 7, 4), Location{});
  EXPECT_EQ(locate(LineTableStyle::kLocations, "", 7, 4), Location{});
}

TEST(LineTableOfNobody, LinesNeverGoBelowZeroOrBeyondAnInt) {
  // GIVEN tables that go up and down without end
  const std::string down(4000, '\x81');
  std::string up;
  for (int i = 0; i < 2000; ++i) up += std::string("\0\x7f", 2);
  for (const LineTableStyle style : kStyles)
    for (const std::string& table : {down, up})
      for (const std::int32_t first_line : {INT32_MIN, -5, 0, 1, INT32_MAX})
        for (const std::int32_t offset : {0, 100, 100'000, INT32_MAX})
          EXPECT_LE(locate(style, table, first_line, offset).line, std::uint32_t{INT32_MAX});
  EXPECT_EQ(locate(LineTableStyle::kLnotab, up, INT32_MAX, 0).line, std::uint32_t{INT32_MAX});
  EXPECT_EQ(locate(LineTableStyle::kLnotab, "", -5, 0).line, 0U);
}

TEST(LineTableOfNobody, NumbersWithoutAnEndAreCutOff) {
  // GIVEN a long entry (14) for one unit, whose varints never end
  const std::string table = "\xf0" + std::string(1000, '\x7f');
  EXPECT_LE(locate(LineTableStyle::kLocations, table, 1, 0).line, std::uint32_t{INT32_MAX});
  EXPECT_EQ(locate(LineTableStyle::kLocations, "\xf0", 1, 0), (Location{1, 0})) << "nothing behind the first byte";
}

TEST(LineTableOfNobody, EveryKindOfLocationEntryIsUnderstood) {
  const auto place = [](std::string_view table) { return locate(LineTableStyle::kLocations, table, 10, 0); };
  EXPECT_EQ(place("\x80\x35"), (Location{10, 4})) << "code 0, short: column 3";
  EXPECT_EQ(place("\xc8\x71"), (Location{10, 80})) << "code 9, the last short one: column 79";
  EXPECT_EQ(place("\xd0\x08\x0d"), (Location{10, 9})) << "code 10: same line, columns as bytes";
  EXPECT_EQ(place("\xe0\xff\x0d"), (Location{12, 256})) << "code 12: two lines below";
  EXPECT_EQ(place("\xe8\x05"), (Location{8, 0})) << "code 13: two lines above, no columns";
  EXPECT_EQ(place(std::string_view("\xf0\x02\x00\x00\x00", 5)), (Location{11, 0})) << "code 14 without columns";
  EXPECT_EQ(place("\xf8"), Location{}) << "code 15: no place";
}

TEST(LineTableOfNobody, TimeOnAnInstructionWithoutALineCountsForTheOneBefore) {
  // 3.11: one unit without a place, one on the line below, column 3, two without a place, one on the line below
  const std::string_view table("\xf8\xd8\x03\x05\xf9\xd8\x03\x05", 8);
  const auto near = [&](std::int32_t at) { return locate_near(LineTableStyle::kLocations, table, 10, at); };
  EXPECT_EQ(near(0), (Location{10, 0})) << "none before: the first line";
  EXPECT_EQ(near(2), (Location{11, 4}));
  EXPECT_EQ(near(4), (Location{11, 4}));
  EXPECT_EQ(near(6), (Location{11, 4}));
  EXPECT_EQ(near(8), (Location{12, 4}));
  EXPECT_EQ(near(INT32_MAX), (Location{10, 0})) << "beyond the end nothing is near";
  EXPECT_EQ(near(INT32_MIN), (Location{10, 0}));
}

TEST(LineTableOfNobody, AnInstructionWithoutALineKeepsTheCountForTheNextOne) {
  // 3.10: 2 bytes at +1, 2 bytes without a line, 2 bytes at +1
  const std::string_view table("\x02\x01\x02\x80\x02\x01", 6);
  EXPECT_EQ(locate(LineTableStyle::kDeltas, table, 5, 0).line, 6U);
  EXPECT_EQ(locate(LineTableStyle::kDeltas, table, 5, 2), Location{});
  EXPECT_EQ(locate(LineTableStyle::kDeltas, table, 5, 4).line, 7U);
  EXPECT_EQ(locate(LineTableStyle::kDeltas, table, 5, 6), Location{}) << "behind the end";
}

}  // namespace
}  // namespace plimsoll::cpython
