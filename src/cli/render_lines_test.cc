// cli/render_lines_test.cc: time by line, counted and shown.
#include "cli/render_lines.h"

#include <gtest/gtest.h>

#include "profile/testing.h"

namespace plimsoll::cli {
namespace {

using profile::testing::draw_profile;

SourceText text_of(SourceOrigin origin, std::string_view text) { return {origin, split_lines(text)}; }

std::string shown(const profile::Profile& profile, const SourceText& source, const LinesOptions& options = {}) {
  return "\n" + render_lines(
                    profile, line_report(profile), [&](std::string_view) { return source; }, options, Page{});
}

TEST(LineReport, CountsASampleOnceForALineHoweverOftenItIsOnTheStack) {
  // GIVEN a recursive function, and a comprehension on the line of the function that holds it
  const profile::Profile profile = draw_profile(R"(
    f(a.py:2 def 1);f(a.py:2 def 1)              10
    g(a.py:5 def 4);<listcomp>(a.py:5 def 5)     20
  )");
  // WHEN lines are counted
  const LineReport report = line_report(profile);
  // THEN no total is more than the time there was
  ASSERT_EQ(report.files.size(), 1U);
  EXPECT_EQ(report.files[0].self_ns, 30'000'000);
  EXPECT_EQ(report.files[0].total_ns, 30'000'000);
  ASSERT_EQ(report.files[0].lines.size(), 2U);
  EXPECT_EQ(report.files[0].lines[0].total_ns, 10'000'000);
  EXPECT_EQ(report.files[0].lines[1].total_ns, 20'000'000);
}

TEST(LineReport, KeepsTheTimeWithoutALineApart) {
  const profile::Profile profile = draw_profile(R"(
    f(a.py:2 def 1);!memcpy(libc.so.6)   10
    -                                     5
    f(a.py:2 def 1)                       1
  )");
  const LineReport report = line_report(profile);
  ASSERT_EQ(report.files.size(), 1U);
  EXPECT_EQ(report.files[0].total_ns, 11'000'000);
  EXPECT_EQ(report.without_line_ns, 15'000'000);
}

TEST(LineReport, KeepsOnlyTheFileAndTheFunctionAskedFor) {
  const profile::Profile profile = draw_profile(R"(
    main(app.py:2 def 1);parse(lib.py:7 def 5)    10
    main(app.py:3 def 1);write(lib.py:17 def 15)  10
  )");
  LineReport report = line_report(profile);
  keep_asked_for(report, profile, {.function = "PARSE", .file = "lib"});
  ASSERT_EQ(report.files.size(), 1U);
  ASSERT_EQ(report.files[0].lines.size(), 2U);
  EXPECT_TRUE(report.files[0].lines[0].is_asked_for);
  EXPECT_FALSE(report.files[0].lines[1].is_asked_for);
}

TEST(LineReport, KeepsLinesOnWhichAnotherFunctionHasMoreTime) {
  // GIVEN a function most of whose time is in a comprehension on one of its lines
  const profile::Profile profile = draw_profile(R"(
    parse(app.py:7 def 5);<listcomp>(app.py:7 def 7)  90
    parse(app.py:9 def 5)                             10
  )");
  // WHEN it is asked for THEN that line is, too, with all its time
  LineReport report = line_report(profile);
  keep_asked_for(report, profile, {.function = "parse"});
  ASSERT_EQ(report.files.size(), 1U);
  ASSERT_EQ(report.files[0].lines.size(), 2U);
  EXPECT_EQ(report.files[0].lines[0].line, 7U);
  EXPECT_TRUE(report.files[0].lines[0].is_asked_for);
  EXPECT_EQ(report.files[0].lines[0].total_ns, 90'000'000);
  EXPECT_TRUE(report.files[0].lines[1].is_asked_for);
}

TEST(LineReport, KeepsLinesOfFunctionsWithoutANameWhereAFileIsAskedFor) {
  // GIVEN a function whose name is empty WHEN only a file is asked for THEN its lines are among them
  profile::Profile profile = profile::testing::draw_profile("(a.py:3 def 1)  5");
  LineReport report = line_report(profile);
  keep_asked_for(report, profile, {.file = "a.py"});
  ASSERT_EQ(report.files.size(), 1U);
  EXPECT_TRUE(report.files[0].lines.at(0).is_asked_for);
}

TEST(RenderLines, ShowsLinesWithTimeInTheirContext) {
  const profile::Profile profile = draw_profile(R"(
    main(app.py:9 def 8);work(app.py:3 def 1)   75
    main(app.py:9 def 8)                        25
  )");
  const std::string_view source =
      "def work():\n    x = 0\n    while x < 9: x += 1\n    return x\n\n\n\ndef main():\n    work()\n";
  LinesOptions options;
  options.context = 1;
  EXPECT_EQ(shown(profile, text_of(SourceOrigin::kProfile, source), options), R"(
app.py  self 100 ms (100.0 %), total 100 ms (100.0 %)
self %            self ms  total ms  line  source
                                           in work
                                        2      x = 0
  75.0  ████████    75.00     75.00     3      while x < 9: x += 1
                                        4      return x
                                        ⋯
                                        8  def main():
  25.0  ██▋         25.00    100.00     9      work()
)");
}

TEST(RenderLines, ShowsNumbersWhereThereIsNoSource) {
  const profile::Profile profile = draw_profile(R"(
    main(app.py:9 def 8);work(app.py:3 def 1)   75
    main(app.py:9 def 8)                        25
  )");
  EXPECT_EQ(shown(profile, {}), R"(
app.py  self 100 ms (100.0 %), total 100 ms (100.0 %)  source not available
self %            self ms  total ms  line  function
  75.0  ████████    75.00     75.00     3  work
  25.0  ██▋         25.00    100.00     9  main
)");
}

TEST(RenderLines, WarnsOfAFileThatHasChanged) {
  const profile::Profile profile = draw_profile("main(app.py:9 def 8) 5");
  const std::string text = shown(profile, text_of(SourceOrigin::kDiskChanged, "a\nb\n"));
  EXPECT_NE(text.find("CHANGED since the profile was made"), std::string::npos);
  EXPECT_NE(text.find("    9"), std::string::npos) << "a line past the end of the file still has its time";
}

TEST(RenderLines, SaysWhatItLeftOut) {
  const profile::Profile profile = draw_profile(R"(
    a(a.py:1 def 1)          60
    b(b.py:1 def 1)          30
    b(b.py:1 def 1);!memcpy  10
  )");
  LinesOptions options;
  options.limit = 1;
  const std::string text = shown(profile, {}, options);
  EXPECT_NE(text.find("not shown: 1 file with 30.0 ms self time together"), std::string::npos) << text;
  EXPECT_NE(text.find("not shown: 10.0 ms self time in code without source lines"), std::string::npos) << text;
}

TEST(RenderLines, SurvivesTheLargestLineNumber) {
  const profile::Profile profile = draw_profile("f(a.py:4294967295 def 1) 5");
  const std::string text = shown(profile, text_of(SourceOrigin::kProfile, "x\n"));
  EXPECT_NE(text.find("4294967295"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::cli
