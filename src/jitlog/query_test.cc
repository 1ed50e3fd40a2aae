// jitlog/query_test.cc: which traces a query picks, and where it is wrong.
#include "jitlog/query.h"

#include <gtest/gtest.h>

#include "jitlog/reader.h"
#include "jitlog/testing.h"

namespace plimsoll::jitlog {
namespace {

// The ids of the traces that match; the error if the query is none.
std::string picked(std::string_view text) {
  static const std::string bytes = testing::loop_and_bridge(4, false);
  static const Forest forest = read(bytes).take();
  const Result<Query> query = Query::parse(text);
  if (!query.ok()) return query.error().message;
  std::string ids;
  for (const Trace& trace : forest.traces)
    if (query.value().matches(forest, trace)) ids += std::to_string(trace.id) + " ";
  return ids;
}

TEST(JitlogQuery, PicksTraces) {
  // GIVEN loop 7 (int_add_ovf, functions schedule and run, 5000 rounds) and bridge 8 (int_sub, 42 times)
  // WHEN they are asked for THEN those are picked that the words say
  for (const auto& [text, ids] : std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {"", "7 8 "},
           {"loops", "7 "},
           {"bridges()", "8 "},
           {"loops ( )", "7 "},
           {"op(\"int_add\")", "7 "},
           {"op('sub')", "8 "},
           {"func(\"sched\")", "7 "},
           {"file(\"lib/\")", "7 "},
           {"count > 42", "7 "},
           {"count>=42", "7 8 "},
           {"count < 43", "8 "},
           {"count <= 41", ""},
           {"count == 42", "8 "},
           {"count != 42", "7 "},
           {"~loops", "8 "},
           {"~~loops", "7 "},
           {"bridges & op(\"int_add_ovf\") | func(\"schedule\")", "7 "},
           {"bridges | loops & count < 10", "8 "},
           {"(bridges | loops) & count < 10", ""},
           {"~(loops & op(\"int\"))", "8 "},
       })
    EXPECT_EQ(picked(text), ids) << text;
}

TEST(JitlogQuery, PointsAtTheColumnThatIsWrong) {
  // GIVEN queries with a mistake WHEN they are parsed THEN the error says where, and what was expected
  for (const auto& [text, column, expected] :
       std::initializer_list<std::tuple<std::string_view, int, std::string_view>>{
           {"loops & ", 9, "expected loops"},
           {"  traces", 3, "expected loops"},
           {"op(\"x\"", 7, "expected \")\", found the end"},
           {"op(x)", 4, "expected a text in quotes, found \"x)\""},
           {"op(\"x)", 4, "expected a text with a quote at its end"},
           {"op", 3, "expected \"(\""},
           {"count 5", 7, "expected one of"},
           {"count > x", 9, "expected a number"},
           {"count > 99999999999999999999", 9, "expected a number"},
           {"loops bridges", 7, "expected \"&\", \"|\" or the end"},
           {"loops)", 6, "as none is open"},
           {"(loops", 7, "expected \")\""},
           {"loops && bridges", 8, "expected loops"},
       }) {
    const std::string message = picked(text);
    EXPECT_TRUE(message.starts_with("the query, column " + std::to_string(column) + ": ")) << text << ": " << message;
    EXPECT_NE(message.find(expected), std::string::npos) << text << ": " << message;
  }
  EXPECT_NE(picked(std::string(200, '(')).find("column 101: expected at most 100"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::jitlog
