// cli/render_top_test.cc: screens, drawn as text.
#include "cli/render_top.h"

#include <gtest/gtest.h>

#include "cli/screen.h"
#include "cli/utf8.h"
#include "profile/testing.h"

namespace plimsoll::cli {
namespace {

using profile::testing::draw_profile;

constexpr std::string_view kWork = R"(
  main(/home/me/app.py:30 def 28);parse(/home/me/parser.py:12 def 10);tokenise(/home/me/parser.py:5 def 2)  3000
  main(/home/me/app.py:30 def 28);parse(/home/me/parser.py:14 def 10)                                      500
  main(/home/me/app.py:31 def 28);loads(/usr/lib/python3.12/json/__init__.py:346 def 299)                  1000
  worker | run(/usr/lib/python3.12/threading.py:1010 def 999);get(/usr/lib/python3.12/queue.py:171 def 154) 4800:lock
)";

const SourceText& source(std::string_view file) {
  static const SourceText text{SourceOrigin::kDisk, {"import re", "", "def tokenise():", "", "    for c in text:"}};
  static const SourceText none;
  return file == "/home/me/parser.py" ? text : none;
}

// A process of two threads that has been looked at for five seconds.
TopPicture picture_of(std::string_view drawing = kWork) {
  TopPicture picture;
  picture.live.profile = draw_profile(drawing);
  picture.live.profile.end_ns = 5'000'000'000;
  picture.live.samples = 1990;
  picture.live.lost = 10;
  picture.live.gil_looks = 1000;
  picture.live.gil_held = 905;
  const profile::SampleTable& samples = picture.live.profile.samples;
  for (std::size_t i = 0; i < picture.live.profile.threads.size(); ++i)
    picture.live.threads.push_back({true, i == 0 ? Activity::kRunning : Activity::kLock, {}, i == 0 ? 905U : 0U});
  for (std::size_t row = 0; row < samples.size(); ++row)
    picture.live.threads[samples.thread[row].index()].stack = samples.stack[row];
  picture.pid = 4242;
  picture.command = "python app.py --port 80";
  picture.python = "3.12.3";
  picture.directory = "/home/me";
  picture.rate_hz = 200;
  picture.usage = os::Usage{'S', 2, 123'400'000, 0};
  picture.cpu_percent = 90.5;
  complete(picture);
  return picture;
}

std::string drawn(TopPicture picture, const TopState& state, ScreenSize size) {
  select_samples(picture, state);
  std::string out = "\n";
  for (const Cell& line : render_top(picture, state, source, size).lines) out += plain(line) + "\n";
  return out;
}

TEST(RenderTop, ShowsFunctions) {
  EXPECT_EQ(drawn(picture_of(), {}, {80, 24}), R"(
)");
}

TEST(RenderTop, ShowsFunctionsByTotalTimeWithWaits) {
  TopState state;
  state.sort = SortBy::kTotal;
  state.time = TopTime::kWall;
  EXPECT_EQ(drawn(picture_of(), state, {80, 12}), R"(
)");
}

TEST(RenderTop, ShowsLinesWithTheirSource) {
  TopState state;
  state.subject = TopSubject::kLines;
  EXPECT_EQ(drawn(picture_of(), state, {80, 11}), R"(
)");
}

TEST(RenderTop, ShowsAFlameGraph) {
  TopState state;
  state.subject = TopSubject::kFlame;
  EXPECT_EQ(drawn(picture_of(), state, {80, 10}), R"(
)");
}

TEST(RenderTop, ShowsThreads) {
  TopState state;
  state.subject = TopSubject::kThreads;
  EXPECT_EQ(drawn(picture_of(), state, {80, 8}), R"(
)");
}

TEST(RenderTop, LeavesOutWhatANarrowScreenHasNoRoomFor) {
  EXPECT_EQ(drawn(picture_of(), {}, {40, 9}), R"(
)");
  TopState state;
  state.subject = TopSubject::kThreads;
  EXPECT_EQ(drawn(picture_of(), state, {50, 7}), R"(
)");
}

TEST(RenderTop, ShowsThatItIsPausedFilteredAndTypedInto) {
  TopState state;
  state.is_paused = true;
  state.filter = "PARSE";
  EXPECT_EQ(drawn(picture_of(), state, {80, 8}), R"(
)");
  state.is_typing = true;
  EXPECT_NE(drawn(picture_of(), state, {80, 8}).find("filter: PARSE_"), std::string::npos);
}

TEST(RenderTop, FiltersTheStacksOfAFlameGraph) {
  TopState state;
  state.subject = TopSubject::kFlame;
  state.filter = "tokenise";
  EXPECT_EQ(drawn(picture_of(), state, {60, 6}), R"(
)");
}

TEST(RenderTop, ScrollsNoFurtherThanToTheLastRow) {
  TopState state;
  state.first_row = 1'000'000;
  TopPicture picture = picture_of();
  select_samples(picture, state);
  const TopScreen screen = render_top(picture, state, source, {80, 7});
  // Four functions on two rows.
  EXPECT_EQ(screen.first_row, 2U);
  EXPECT_NE(plain(screen.lines[5]).find("main"), std::string::npos);
}

TEST(RenderTop, SaysWhyThereIsNothing) {
  EXPECT_NE(drawn(picture_of("-  0"), {}, {80, 24}).find("process 4242"), std::string::npos);
  EXPECT_NE(drawn(picture_of("run 100:lock"), {}, {80, 24}).find("w shows where it waits"), std::string::npos);
  TopState state;
  state.filter = "nothing of that name";
  EXPECT_NE(drawn(picture_of(), state, {80, 24}).find("nothing here matches the filter"), std::string::npos);
  TopPicture ended = picture_of();
  ended.usage.reset();
  EXPECT_NE(drawn(std::move(ended), {}, {80, 24}).find("ENDED"), std::string::npos);
}

// A process whose names are made to break a screen.
TopPicture hostile_picture() {
  TopPicture picture = picture_of();
  profile::Profile& profile = picture.live.profile;
  std::string marks = "e";
  for (int i = 0; i < 5000; ++i) marks += "\xcc\x81";
  for (const std::string& name : {std::string("\x1b[2J\x1b]0;owned\x07"),
                                  std::string("\xe2\x80\xae"
                                              "esrever"),
                                  marks, std::string("漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字"),
                                  std::string("a\r\nb\x9b\xff"), std::string(3000, 'x')}) {
    const StringId text = profile.strings.intern(name);
    const FunctionId function = profile.functions.intern({text, text, 1, profile::FunctionKind::kPython});
    const StackId stack = profile.stacks.intern({{}, profile.frames.intern({function, 1, 1})});
    profile.threads[0].name = name;
    picture.live.threads[0].stack = stack;
    profile.samples.push_back(1, ThreadId{0}, stack, 1'000'000'000);
  }
  picture.command = "\x1b[31m" + std::string(500, 'c');
  complete(picture);
  return picture;
}

TEST(RenderTop, NeverDrawsBeyondTheScreenNorAControlCharacter) {
  TopState state;
  for (const TopSubject subject :
       {TopSubject::kFunctions, TopSubject::kLines, TopSubject::kFlame, TopSubject::kThreads}) {
    state.subject = subject;
    TopPicture picture = hostile_picture();
    select_samples(picture, state);
    for (std::size_t columns = 1; columns <= 130; ++columns)
      for (const std::size_t rows : {1U, 2U, 3U, 4U, 5U, 6U, 24U}) {
        const TopScreen screen = render_top(picture, state, source, {columns, rows});
        ASSERT_EQ(screen.lines.size(), rows);
        for (const Cell& line : screen.lines) {
          const std::string text = plain(line);
          ASSERT_LE(display_width(text), columns) << text;
          ASSERT_EQ(text, printable(text));
        }
      }
  }
}

TEST(RenderTop, IsTheSameAsTextForAPipe) {
  TopPicture picture = picture_of();
  select_samples(picture, {});
  EXPECT_EQ("\n" + top_text(picture, {}, source, Page{80, Paint(false), ""}, 2), R"(
)");
}

TEST(RenderTop, TellsAllOfItAsJson) {
  TopPicture picture = picture_of("main(/app.py:3 def 2)  1000");
  select_samples(picture, {});
  EXPECT_EQ(top_json(picture, {}), R"()");
}

TEST(Screen, WritesOnlyLinesThatHaveChanged) {
  const std::vector<Cell> before = {{{"head"}}, {{"one"}}, {{"same"}}};
  const std::vector<Cell> after = {{{"head"}}, {{"two", Style::kStrong}}, {{"same"}}, {{"four"}}};
  EXPECT_EQ(changes_between(before, after, {10, 4}, Paint(true)),
            "\x1b[2;1H\x1b[1mtwo\x1b[0m\x1b[K\x1b[4;1Hfour\x1b[K");
}

TEST(Screen, PutsColumnsWhereTheyBelongWhateverTheTerminalThinksOfAName) {
  // GIVEN a name that not all terminals find equally wide, and a line that fills the screen
  const std::vector<Cell> lines = {{{"漢"}, {"where"}}, {{"0123456789"}}};
  EXPECT_EQ(changes_between({}, lines, {10, 2}, Paint(false)),
            "\x1b[1;1H漢\x1b[3Gwhere\x1b[8G\x1b[K\x1b[2;1H0123456789");
}

}  // namespace
}  // namespace plimsoll::cli
