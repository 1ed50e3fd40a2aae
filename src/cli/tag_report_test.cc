#include "cli/tag_report.h"

#include <gtest/gtest.h>

#include "profile/testing.h"

namespace plimsoll::cli {
namespace {

using profile::testing::draw_profile;

constexpr std::string_view kDrawing = R"(
  main;serve  10  #request=GET,user=1
  main;serve  30  #request=POST,user=1
  main;serve   5  #request=GET
  main        55
)";

TEST(TagReport, AddsUpEachValueOfEachTag) {
  const profile::Profile profile = draw_profile(kDrawing);
  std::vector<std::string> rows;
  for (const TagRow& row : tag_report(profile))
    rows.push_back(std::string(profile.strings[row.tag.name]) + "=" + std::string(profile.strings[row.tag.value]) +
                   " " + std::to_string(row.sampled_ns / 1'000'000));
  EXPECT_EQ(rows, (std::vector<std::string>{"request=POST 30", "request=GET 15", "user=1 40", "= 55"}));
}

TEST(TagReport, IsATableThatSaysWhatItLeavesOut) {
  const profile::Profile profile = draw_profile(kDrawing);
  EXPECT_EQ(render_tags(profile, tag_report(profile), 2, {80, Paint(false), {}}),
            "CPU %  CPU ms  samples  tag      value\n"
            " 30.0   30.00        1  request  POST\n"
            " 15.0   15.00        2  request  GET\n"
            "... and 2 more; --limit 0 shows all\n");
}

TEST(TagReport, TellsWaitsApart) {
  const profile::Profile profile = draw_profile("main  10  #job=a\nmain  30:io  #job=a\nmain  60:sleep");
  EXPECT_EQ(render_tags(profile, tag_report(profile), 0, {80, Paint(false), {}}),
            "time %  time ms  running %  io %  sleep %  samples  tag        value\n"
            "  40.0    40.00       25.0  75.0                 2  job        a\n"
            "  60.0    60.00                     100.0        1  [no tags]\n");
}

}  // namespace
}  // namespace plimsoll::cli
