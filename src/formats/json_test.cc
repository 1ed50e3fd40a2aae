// formats/json_test.cc: what JsonWriter appends.
#include "formats/json.h"

#include <limits>

#include "formats/testing.h"

namespace plimsoll::formats {
namespace {

template <typename Write>
std::string written(Write write) {
  std::string out;
  JsonWriter json(out);
  write(json);
  return out;
}

TEST(JsonWriter, PutsCommasBetweenValuesOnly) {
  // GIVEN nested objects and arrays WHEN they are written THEN commas stand where JSON wants them
  EXPECT_EQ(written([](JsonWriter& json) {
              json.begin_object();
              json.member("a", 1);
              json.key("b");
              json.begin_array();
              json.begin_array();
              json.end_array();
              json.null();
              json.boolean(true);
              json.begin_object();
              json.end_object();
              json.end_array();
              json.member("c", "x");
              json.end_object();
            }),
            R"({"a":1,"b":[[],null,true,{}],"c":"x"})");
}

TEST(JsonWriter, EscapesTexts) {
  // GIVEN a text with quotes, control characters and other scripts WHEN it is written THEN a reader gets it back
  const std::string text = "a\"b\\c\n\x01\t/é漢";
  const std::string json = written([&](JsonWriter& out) { out.text(text); });
  EXPECT_EQ(testing::parse_json(json).as_string(), text.c_str());
}

TEST(JsonWriter, ReplacesBytesThatAreNotUtf8) {
  // GIVEN a lone byte, a surrogate and an overlong form WHEN they are written THEN the text is valid UTF-8
  EXPECT_EQ(written([](JsonWriter& out) { out.text("a\xff"); }), "\"a\xef\xbf\xbd\"");
  EXPECT_EQ(testing::parse_json(written([](JsonWriter& out) { out.text("\xed\xa0\x80\xc0\xaf"); })).as_string().size(),
            5U * 3U);
}

TEST(JsonWriter, WritesMillisecondsExactly) {
  // GIVEN nanoseconds WHEN they are written as milliseconds THEN no digit is lost or invented
  const auto milliseconds = [](std::int64_t ns) { return written([&](JsonWriter& out) { out.milliseconds(ns); }); };
  EXPECT_EQ(milliseconds(0), "0");
  EXPECT_EQ(milliseconds(1'000'000), "1");
  EXPECT_EQ(milliseconds(1'500'000), "1.5");
  EXPECT_EQ(milliseconds(1), "0.000001");
  EXPECT_EQ(milliseconds(-2'000'010), "-2.00001");
  EXPECT_EQ(milliseconds(1'767'323'045'123'456'789), "1767323045123.456789");
  EXPECT_EQ(milliseconds(std::numeric_limits<std::int64_t>::min()), "-9223372036854.775808");
}

}  // namespace
}  // namespace plimsoll::formats
