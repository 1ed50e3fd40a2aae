// cli/json_output_test.cc: reports as JSON that another program can rely on (docs/json.md).
#include "cli/json_output.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "profile/testing.h"

namespace plimsoll::cli {
namespace {

namespace json = boost::json;

profile::Profile sample() {
  profile::Profile profile = profile::testing::draw_profile(R"(
             main(app.py:9 def 8);parse(app.py:31 def 30)   60
             main(app.py:9 def 8)                           10
    worker | run;!memcpy(libc.so.6)                         30
  )");
  profile.set_meta("rate_hz", "1000");
  profile.drops.push_back({"ring full", 2, 3'000'000});
  return profile;
}

json::object parsed(const std::string& text) {
  EXPECT_TRUE(text.ends_with("}\n"));
  boost::system::error_code error;
  const json::value value = json::parse(text, error);
  EXPECT_FALSE(error) << text;
  return value.is_object() ? value.get_object() : json::object();
}

std::int64_t number(const json::value& row, const char* name) { return row.at(name).to_number<std::int64_t>(); }
std::string text(const json::value& row, const char* name) { return json::value_to<std::string>(row.at(name)); }

TEST(TreeJson, RefersToParentsByRow) {
  // GIVEN a profile of two threads
  profile::Profile profile = sample();
  const Selection selection = select(profile, {});
  TreeOptions options;
  options.min_percent = 0;
  // WHEN its tree is written
  const json::object out =
      parsed(tree_json(profile, selection, profile::tree(profile, profile::Granularity::kFunction), options));
  // THEN callers come before callees, which name their row
  EXPECT_EQ(json::value_to<std::string>(out.at("view")), "tree");
  const json::array& rows = out.at("tree").as_array();
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_TRUE(rows[0].at("parent").is_null());
  EXPECT_EQ(text(rows[0], "function"), "main");
  EXPECT_EQ(text(rows[0], "file"), "app.py");
  EXPECT_EQ(number(rows[0], "first_line"), 8);
  EXPECT_EQ(number(rows[0], "total_ns"), 70'000'000);
  EXPECT_EQ(number(rows[0], "self_ns"), 10'000'000);
  EXPECT_EQ(number(rows[0], "samples"), 2);
  EXPECT_EQ(number(rows[1], "parent"), 0);
  EXPECT_EQ(text(rows[1], "function"), "parse");
  EXPECT_TRUE(rows[2].at("parent").is_null());
  EXPECT_EQ(number(rows[3], "parent"), 2);
  EXPECT_EQ(text(rows[3], "kind"), "native");
}

TEST(TreeJson, TellsTheSessionAndTheSelection) {
  profile::Profile profile = sample();
  const Selection selection = select(profile, {.thread = "worker", .from_ns = 1});
  const json::object out = parsed(flat_json(profile, selection, profile::flat(profile)));
  const json::value& session = out.at("session");
  EXPECT_EQ(number(session, "sampled_cpu_ns"), 100'000'000);
  EXPECT_EQ(text(session.at("meta"), "rate_hz"), "1000");
  EXPECT_EQ(text(session.at("drops").at(0), "reason"), "ring full");
  EXPECT_TRUE(session.at("complete").as_bool());
  EXPECT_EQ(number(out.at("shown"), "time_ns"), 30'000'000);
  EXPECT_EQ(text(out.at("shown"), "thread"), "worker");
  EXPECT_EQ(number(out.at("shown"), "from_ns"), 1);
  EXPECT_EQ(out.at("shown").as_object().if_contains("to_ns"), nullptr);
}

TEST(FlatJson, HasTheHeaviestFirst) {
  profile::Profile profile = sample();
  const Selection selection = select(profile, {});
  const json::object out = parsed(flat_json(profile, selection, profile::flat(profile)));
  EXPECT_EQ(text(out.at("flat").at(0), "function"), "parse");
  EXPECT_EQ(number(out.at("flat").at(0), "self_samples"), 1);
}

TEST(LinesJson, HasARowForEachLine) {
  profile::Profile profile = sample();
  const Selection selection = select(profile, {});
  const json::object out = parsed(lines_json(profile, selection, line_report(profile)));
  ASSERT_EQ(out.at("lines").as_array().size(), 2U);
  EXPECT_EQ(number(out.at("lines").at(0), "line"), 9);
  EXPECT_EQ(number(out.at("lines").at(0), "total_ns"), 70'000'000);
}

TEST(ThreadsJson, HasARowForEachThread) {
  profile::Profile profile = sample();
  const Selection selection = select(profile, {});
  const json::object out = parsed(threads_json(profile, selection, thread_report(profile, 0)));
  EXPECT_EQ(text(out.at("threads").at(0), "thread"), "MainThread");
  EXPECT_EQ(number(out.at("threads").at(0), "tid"), 100);
  EXPECT_EQ(number(out.at("threads").at(1), "sampled_ns"), 30'000'000);
  EXPECT_EQ(number(out.at("threads").at(1).at("activities"), "running"), 30'000'000);
}

TEST(InfoJson, HasRatesAndSizes) {
  const profile::Profile profile = sample();
  const json::object out = parsed(info_json(profile, session_facts(profile, 1234), "app.plim"));
  EXPECT_DOUBLE_EQ(out.at("covered_percent").to_number<double>(), 100.0);
  EXPECT_DOUBLE_EQ(out.at("delivered_hz").to_number<double>(), 30.0);
  EXPECT_EQ(number(out.at("tables"), "functions"), 4);
  EXPECT_EQ(out.at("file_bytes").to_number<std::int64_t>(), 1234);
}

TEST(TreeJson, StaysValidWhateverTheNamesAre) {
  profile::Profile profile = profile::testing::draw_profile("quote\"back\\slash\xff\x01 10");
  const Selection selection = select(profile, {});
  const json::object out = parsed(flat_json(profile, selection, profile::flat(profile)));
  EXPECT_EQ(text(out.at("flat").at(0), "function"), "quote\"back\\slash\xef\xbf\xbd\x01");
}

}  // namespace
}  // namespace plimsoll::cli
