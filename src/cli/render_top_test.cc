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
  for (std::size_t i = 0; i < picture.live.profile.threads.size(); ++i)
    picture.live.threads.push_back(
        {true, i == 0 ? Activity::kRunning : Activity::kLock, StackId{2 + 3 * i}, i == 0 ? std::uint64_t{905} : 0});
  picture.live.profile.threads[0].is_main = true;
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

TEST(RenderTop, ShowsFunctionsOn80By24) {
  EXPECT_EQ(drawn(picture_of(), {}, {80, 14}), R"(
process 4242  Python 3.12.3  python app.py --port 80
CPU 90.5 %  GIL 90.5 %  RSS 123 MB  2 threads: 1 running, 1 lock
functions by self CPU time, last 5 s  200 Hz, 0.5 % failed
 self % total %     self  function                         where
   66.7    66.7   3.00 s  tokenise                         parser.py:2
   22.2    22.2   1.00 s  loads                            json/__init__.py:299
   11.1    77.8 500 ms    parse                            parser.py:10
          100.0      0 s  main                             app.py:28




q quit  p pause  s self  t total  l lines  f flame  T threads  w waits  / filte…
)");
}

}  // namespace
}  // namespace plimsoll::cli
