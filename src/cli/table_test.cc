// cli/table_test.cc: columns on wide and narrow pages.
#include "cli/table.h"

#include <gtest/gtest.h>

#include "cli/utf8.h"

namespace plimsoll::cli {
namespace {

Page page_of(std::size_t width) {
  Page page;
  page.width = width;
  return page;
}

Table sample() {
  Table table({{"total", Fit::kRight}, {"function", Fit::kCutRight}, {"where", Fit::kCutLeft}});
  table.add_row({{{"12.5"}}, {{"Encoder.encode"}}, {{"package/module/encoder.py:12"}}});
  table.add_row({{{"3"}}, {{"├─ "}, {"größe"}}, {{"a.py:1"}}});
  return table;
}

TEST(Table, AlignsNumbersRightAndTextLeft) {
  EXPECT_EQ(sample().render(page_of(80)),
            "total  function        where\n"
            " 12.5  Encoder.encode  package/module/encoder.py:12\n"
            "    3  ├─ größe        a.py:1\n");
}

TEST(Table, CutsPathsAtASlashBeforeItCutsNames) {
  EXPECT_EQ(sample().render(page_of(44)),
            "total  function        where\n"
            " 12.5  Encoder.encode  …/encoder.py:12\n"
            "    3  ├─ größe        a.py:1\n");
}

TEST(Table, IsNeverWiderThanThePage) {
  for (std::size_t width = 28; width < 80; ++width) {
    const std::string text = sample().render(page_of(width));
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      EXPECT_LE(display_width(text.substr(at, end - at)), width);
      at = end + 1;
    }
  }
}

TEST(Table, LeavesOutWhatCanBeSparedBeforeNamesSayNothing) {
  // GIVEN a name of more than twenty letters beside numbers, of which two can be spared
  Table table({{"total"}, {"samples", Fit::kRight, 2}, {"first", Fit::kRight, 1}, {"function", Fit::kCutRight}});
  table.add_row({{{"12.5"}}, {{"7"}}, {{"3"}}, {{"Encoder.encode_all_of_it"}}});
  // WHEN the page becomes narrower THEN the name is cut a little, then one of them goes, then the other
  EXPECT_EQ(table.render(page_of(43)),
            "total  samples  first  function\n 12.5        7      3  Encoder.encode_all_…\n");
  EXPECT_EQ(table.render(page_of(42)), "total  first  function\n 12.5      3  Encoder.encode_all_of_it\n");
  EXPECT_EQ(table.render(page_of(33)), "total  function\n 12.5  Encoder.encode_all_of_it\n");
}

TEST(Table, CutsACellOfSeveralPiecesOnce) {
  Table table({{"function", Fit::kCutRight}});
  table.add_row({{{"├─ "}, {"abcdefghij"}, {" ×12"}}});
  EXPECT_EQ(table.render(page_of(12)), "function\n├─ abcdefgh…\n");
  EXPECT_EQ(table.render(page_of(14)), "function\n├─ abcdefghij…\n");
  EXPECT_EQ(table.render(page_of(17)), "function\n├─ abcdefghij ×12\n");
}

TEST(Table, PaintsWithoutDisturbingTheColumns) {
  Table table({{"n", Fit::kRight}, {"function", Fit::kCutRight}});
  table.add_row({{{"7", Style::kHot}}, {{"f"}}});
  Page page;
  page.paint = Paint(true);
  EXPECT_EQ(table.render(page), "\x1b[2mn\x1b[0m  \x1b[2mfunction\x1b[0m\n\x1b[1;31m7\x1b[0m  f\n");
}

}  // namespace
}  // namespace plimsoll::cli
