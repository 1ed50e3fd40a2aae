// formats/speedscope/reader_test.cc: what other exporters mean.
#include "formats/speedscope/reader.h"

#include <gtest/gtest.h>

#include "formats/input.h"
#include "profile/testing.h"

namespace plimsoll::formats::speedscope {
namespace {

// A speedscope file with one frame "work" for each of these lines, and a sample on each.
profile::Profile speedscope_of(std::string_view exporter) {
  std::string text = R"({"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":")";
  text.append(exporter).append(R"(","shared":{"frames":[{"name":"work","file":"app.py","line":3,"col":null},)");
  text += R"({"name":"work","file":"app.py","line":4,"col":null}]},)";
  text += R"("profiles":[{"type":"sampled","name":"t","unit":"seconds","samples":[[0],[1]],"weights":[1,1]}]})";
  Result<profile::Profile> read_back = read(text);
  EXPECT_TRUE(read_back.ok()) << read_back.error().message;
  return read_back.take();
}

TEST(SpeedscopeReader, TakesLinesForThoseThatRanUnlessTheExporterMeansFirstLines) {
  // GIVEN a frame for each line that ran, as py-spy writes them WHEN they are read THEN they are of one function
  const profile::Profile lines = speedscope_of("py-spy@0.4.0");
  ASSERT_EQ(lines.functions.size(), 1U);
  EXPECT_EQ(lines.functions.rows()[0].first_line, 0U);
  ASSERT_EQ(lines.frames.size(), 2U);
  EXPECT_EQ(lines.frames.rows()[1].line, 4U);
  // AND Plimsoll and pyinstrument write where functions begin
  for (const char* exporter : {"plimsoll@0.1.0", "pyinstrument"}) {
    const profile::Profile functions = speedscope_of(exporter);
    ASSERT_EQ(functions.functions.size(), 2U) << exporter;
    EXPECT_EQ(functions.functions.rows()[1].first_line, 4U);
    EXPECT_EQ(functions.frames.rows()[1].line, 0U);
  }
}

TEST(SpeedscopeReader, KeepsTheTimesOfEvents) {
  // GIVEN calls with time between them in which there is none, of two threads WHEN they are read THEN they are at their
  // times, since the first one began
  const Result<profile::Profile> read_back = read(R"({"$schema":"https://www.speedscope.app/file-format-schema.json",
    "shared":{"frames":[{"name":"f"},{"name":"g"}]},"profiles":[
      {"type":"evented","name":"a","unit":"seconds","startValue":2,"endValue":9,
       "events":[{"type":"O","frame":0,"at":2},{"type":"C","frame":0,"at":3},
                 {"type":"O","frame":1,"at":8},{"type":"C","frame":1,"at":9}]},
      {"type":"evented","name":"b","unit":"seconds","startValue":1,"endValue":9,
       "events":[{"type":"O","frame":0,"at":1},{"type":"C","frame":0,"at":9}]}]})");
  ASSERT_TRUE(read_back.ok()) << read_back.error().message;
  constexpr std::int64_t kSecond = 1'000'000'000;
  EXPECT_EQ(read_back.value().samples.time_ns, (std::vector<std::int64_t>{2 * kSecond, 8 * kSecond, 8 * kSecond}));
  EXPECT_EQ(read_back.value().samples.weight_ns, (std::vector<std::int64_t>{kSecond, kSecond, 8 * kSecond}));
  EXPECT_EQ(read_back.value().meta_value("times"), "");
}

// json.dumps of Python writes what is no text, as a file's name may be, so.
TEST(SpeedscopeReader, ReplacesHalvesOfCharacters) {
  // GIVEN names with a half of a character at the end, two second halves, a half before an escape, and a whole
  // character
  const std::string frames =
      R"([{"name":"a\udc00\udcff"},{"name":"b\uDCff\udc00","file":"\ud800\n.py"},{"name":"\ud83d\ude00"},{"name":"\\\ud800"}])";
  std::string text = R"({"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":)" + frames +
                     R"(},"profiles":[{"type":"sampled","unit":"seconds","samples":[[0,1,2,3]],"weights":[1]}]})";
  // WHEN they are read THEN each half is U+FFFD, and all else is as it was
  const Result<profile::Profile> read = read_profile(text);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(profile::testing::stacks_of(read.value()),
            std::vector<std::string>{"a\uFFFD\uFFFD;b\uFFFD\uFFFD;\U0001F600;\\\uFFFD"});
  // AND what is no JSON for another reason is told by the byte that it is at
  text.pop_back();
  EXPECT_NE(read_profile(text).error().message.find("incomplete JSON after byte " + std::to_string(text.size())),
            std::string::npos)
      << read_profile(text).error().message;
}

}  // namespace
}  // namespace plimsoll::formats::speedscope
