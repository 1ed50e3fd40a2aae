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
process 4242  Python 3.12.3  python app.py --port 80
CPU 90.5 %  GIL 90.5 %  RSS 123 MB  2 threads: 1 running, 1 lock
functions by self CPU time, last 5 s  200 Hz, 0.5 % failed
 self % total %     self  function                          where
   66.7    66.7   3.00 s  tokenise                          parser.py:2
   22.2    22.2   1.00 s  loads                             json/__init__.py:299
   11.1    77.8   500 ms  parse                             parser.py:10
          100.0      0 s  main                              app.py:28















q quit  ? help  p pause  s/t sort  l lines  f flame  T threads  w wall  / filter
)");
}

TEST(RenderTop, ShowsFunctionsByTotalTimeWithWaits) {
  TopState state;
  state.sort = SortBy::kTotal;
  state.time = TopTime::kWall;
  EXPECT_EQ(drawn(picture_of(), state, {80, 12}), R"(
process 4242  Python 3.12.3  python app.py --port 80
CPU 90.5 %  GIL 90.5 %  RSS 123 MB  2 threads: 1 running, 1 lock
functions by total time with waits, last 5 s  200 Hz, 0.5 % failed
 self % total %    total  function                          where
   51.6    51.6   4.80 s  get                               queue.py:154
           51.6   4.80 s  run                               threading.py:999
           48.4   4.50 s  main                              app.py:28
    5.4    37.6   3.50 s  parse                             parser.py:10
   32.3    32.3   3.00 s  tokenise                          parser.py:2
   10.8    10.8   1.00 s  loads                             json/__init__.py:299

q quit  ? help  p pause  s/t sort  l lines  f flame  T threads  w wall  / filter
)");
}

TEST(RenderTop, ShowsLinesWithTheirSource) {
  TopState state;
  state.subject = TopSubject::kLines;
  EXPECT_EQ(drawn(picture_of(), state, {80, 11}), R"(
process 4242  Python 3.12.3  python app.py --port 80
CPU 90.5 %  GIL 90.5 %  RSS 123 MB  2 threads: 1 running, 1 lock
lines by self CPU time, last 5 s  200 Hz, 0.5 % failed
 self % total %     self  line                  source
   66.7    66.7   3.00 s  parser.py:5           for c in text:
   22.2    22.2   1.00 s  json/__init__.py:346
   11.1    11.1   500 ms  parser.py:14
           77.8      0 s  app.py:30
           66.7      0 s  parser.py:12
           22.2      0 s  app.py:31
q quit  ? help  p pause  s/t sort  l lines  f flame  T threads  w wall  / filter
)");
}

TEST(RenderTop, ShowsAFlameGraph) {
  TopState state;
  state.subject = TopSubject::kFlame;
  EXPECT_EQ(drawn(picture_of(), state, {80, 10}), R"(
process 4242  Python 3.12.3  python app.py --port 80
CPU 90.5 %  GIL 90.5 %  RSS 123 MB  2 threads: 1 running, 1 lock
flame graph of CPU time, last 5 s  200 Hz, 0.5 % failed

│main
│loads            │parse
                  │tokenise


q quit  ? help  p pause  s/t sort  l lines  f flame  T threads  w wall  / filter
)");
}

TEST(RenderTop, ShowsThreads) {
  TopState state;
  state.subject = TopSubject::kThreads;
  EXPECT_EQ(drawn(picture_of(), state, {80, 8}), R"(
process 4242  Python 3.12.3  python app.py --port 80
CPU 90.5 %  GIL 90.5 %  RSS 123 MB  2 threads: 1 running, 1 lock
threads, last 5 s  200 Hz, 0.5 % failed
    TID  CPU %  GIL %  does    run rdy gil lck  io slp  thread, and where
    100   90.0   90.5  running 100                      MainThread  loads
    101    0.0    0.0  lock                100          worker  get

q quit  ? help  p pause  s/t sort  l lines  f flame  T threads  w wall  / filter
)");
}

TEST(RenderTop, LeavesOutWhatANarrowScreenHasNoRoomFor) {
  EXPECT_EQ(drawn(picture_of(), {}, {40, 9}), R"(
process 4242  Python 3.12.3  python app…
CPU 90.5 %  GIL 90.5 %  RSS 123 MB  2 t…
functions by self CPU time, last 5 s  2…
 self % total %  function
   66.7    66.7  tokenise
   22.2    22.2  loads
   11.1    77.8  parse
          100.0  main
q quit  ? help  p pause  s/t sort  l li…
)");
  TopState state;
  state.subject = TopSubject::kThreads;
  EXPECT_EQ(drawn(picture_of(), state, {50, 7}), R"(
process 4242  Python 3.12.3  python app.py --port…
CPU 90.5 %  GIL 90.5 %  RSS 123 MB  2 threads: 1 …
threads, last 5 s  200 Hz, 0.5 % failed
    TID  CPU %  GIL %  does     thread, and where
    100   90.0   90.5  running  MainThread  loads
    101    0.0    0.0  lock     worker  get
q quit  ? help  p pause  s/t sort  l lines  f fla…
)");
}

TEST(RenderTop, ShowsThatItIsPausedFilteredAndTypedInto) {
  TopState state;
  state.is_paused = true;
  state.filter = "PARSE";
  EXPECT_EQ(drawn(picture_of(), state, {80, 8}), R"(
PAUSED  process 4242  Python 3.12.3  python app.py --port 80
CPU 90.5 %  GIL 90.5 %  RSS 123 MB  2 threads: 1 running, 1 lock
functions by self CPU time, last 5 s  filter: PARSE  200 Hz, 0.5 % failed
 self % total %     self  function                          where
   66.7    66.7   3.00 s  tokenise                          parser.py:2
   11.1    77.8   500 ms  parse                             parser.py:10

q quit  ? help  p pause  s/t sort  l lines  f flame  T threads  w wall  / filter
)");
  state.is_typing = true;
  EXPECT_NE(drawn(picture_of(), state, {80, 8}).find("filter: PARSE_"), std::string::npos);
}

TEST(RenderTop, FiltersTheStacksOfAFlameGraph) {
  TopState state;
  state.subject = TopSubject::kFlame;
  state.filter = "tokenise";
  EXPECT_EQ(drawn(picture_of(), state, {60, 6}), R"(
process 4242  Python 3.12.3  python app.py --port 80
CPU 90.5 %  GIL 90.5 %  RSS 123 MB  2 threads: 1 running, 1…
flame graph of CPU time, last 5 s  filter: tokenise  200 Hz…

│main › parse › tokenise
q quit  ? help  p pause  s/t sort  l lines  f flame  T thre…
)");
}

TEST(RenderTop, FiltersTheStacksOfAFlameGraphByPlace) {
  // GIVEN a filter that is the place of a function, as functions show it
  TopState state;
  state.subject = TopSubject::kFlame;
  state.filter = "JSON/__init__.py:299";
  // WHEN the flame graph is drawn THEN it has the stacks with that function
  EXPECT_NE(drawn(picture_of(), state, {60, 6}).find("│main › loads\n"), std::string::npos);
}

TEST(RenderTop, FiltersLinesByEachFunctionOnThem) {
  // GIVEN a line with two functions, of which one has most of its time
  TopState state;
  state.subject = TopSubject::kLines;
  state.filter = "around";
  const std::string all = drawn(picture_of(R"(
    around(/home/me/app.py:3 def 1);<listcomp>(/home/me/app.py:3 def 3)  2000
    other(/home/me/app.py:9 def 8)                                       1000
)"),
                                state, {80, 8});
  // WHEN the other one is asked for THEN the line is there
  EXPECT_NE(all.find("app.py:3\n"), std::string::npos);
  EXPECT_EQ(all.find("app.py:9"), std::string::npos);
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
    for (const std::size_t columns : {1U, 2U, 3U, 7U, 8U, 15U, 16U, 17U, 26U, 40U, 59U, 60U, 65U, 66U, 80U, 131U})
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
process 4242  Python 3.12.3  python app.py --port 80
CPU 90.5 %  GIL 90.5 %  RSS 123 MB  2 threads: 1 running, 1 lock
functions by self CPU time, last 5 s  200 Hz, 0.5 % failed
 self % total %     self  function                          where
   66.7    66.7   3.00 s  tokenise                          parser.py:2
   22.2    22.2   1.00 s  loads                             json/__init__.py:299
)");
}

TEST(RenderTop, TellsAllOfItAsJson) {
  TopPicture picture = picture_of("main(/app.py:3 def 2)  1000");
  select_samples(picture, {});
  EXPECT_EQ(
      top_json(picture, {}),
      R"({"schema":1,"plimsoll":"0.1.0","pid":4242,"python":"3.12.3","command":"python app.py --port 80","rate_hz":200,"window_ns":5000000000,"process_cpu_ns":4525000000,"resident_bytes":123400000,"gil_looks":1000,"gil_held":905,"samples":1,"failed":10,"sampled_ns":1000000000,"mode":"cpu","functions":[{"function":"main","file":"/app.py","first_line":2,"self_ns":1000000000,"total_ns":1000000000,"self_samples":1,"samples":1}],"lines":[{"function":"main","file":"/app.py","line":3,"self_ns":1000000000,"total_ns":1000000000}],"threads":[{"tid":100,"name":"MainThread","state":"running","gil_looks":905,"sampled_ns":1000000000,"activities":{"running":1000000000}}]}
)");
}

TEST(RenderTop, TellsAsJsonWhatTheFilterLetsThrough) {
  // GIVEN a filter WHEN a picture is told as JSON
  TopState state;
  state.filter = "tokenise";
  TopPicture picture = picture_of();
  select_samples(picture, state);
  const std::string json = top_json(picture, state);
  // THEN it has the functions and lines that the screen would show, with the same shares of the same sum
  const std::string function = R"({"function":"tokenise","file":"/home/me/parser.py",)";
  EXPECT_NE(json.find(R"("functions":[)" + function + R"("first_line":2,)"), std::string::npos);
  EXPECT_NE(json.find(R"("lines":[)" + function + R"("line":5,)"), std::string::npos);
  EXPECT_NE(json.find(R"("sampled_ns":4500000000,)"), std::string::npos);
  EXPECT_EQ(json.find(R"("function":"main")"), std::string::npos);
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
