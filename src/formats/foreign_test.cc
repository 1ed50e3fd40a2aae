// formats/foreign_test.cc: what readers of foreign formats make of names, files and lines.
#include "formats/foreign.h"

#include <gtest/gtest.h>

#include <utility>

#include "formats/input.h"
#include "formats/registry.h"
#include "profile/testing.h"
#include "profile/time_kind.h"

namespace plimsoll::formats {
namespace {

using profile::FunctionKind;

std::string parts_of(std::string_view label) {
  const ForeignFrame frame = frame_of_label(label);
  return std::string(frame.name) + "|" + std::string(frame.file) + "|" + std::to_string(frame.line);
}

TEST(FrameOfLabel, FindsThePlaceInTheBracketsAtTheEnd) {
  EXPECT_EQ(parts_of("work (app.py:7)"), "work|app.py|7");
  EXPECT_EQ(parts_of("work (/usr/lib/libc.so.6)"), "work|/usr/lib/libc.so.6|0");
  EXPECT_EQ(parts_of("<module> (<string>:1)"), "<module>|<string>|1");
  EXPECT_EQ(parts_of("main (mytool:3)"), "main|mytool|3");
  EXPECT_EQ(parts_of("gettime ([vdso])"), "gettime|[vdso]|0");
  EXPECT_EQ(parts_of("time.sleep"), "time.sleep||0");
}

TEST(FrameOfLabel, LeavesBracketsOfPathsInThem) {
  EXPECT_EQ(parts_of("work (C:\\Program Files (x86)\\Python\\app.py:12)"),
            "work|C:\\Program Files (x86)\\Python\\app.py|12");
  EXPECT_EQ(parts_of("work (/home/u/My Project (old)/app.py:3)"), "work|/home/u/My Project (old)/app.py|3");
  EXPECT_EQ(parts_of("work (/srv/a(b/app.py:3)"), "work|/srv/a(b/app.py|3");
}

TEST(FrameOfLabel, TakesNoTypesOfArgumentsForAFile) {
  EXPECT_EQ(parts_of("std::function<void (int)>::operator()(int)"), "std::function<void (int)>::operator()(int)||0");
  EXPECT_EQ(parts_of("operator new (unsigned long)"), "operator new (unsigned long)||0");
  EXPECT_EQ(parts_of("std::function<void (int)>::operator()(int) (/usr/lib/x.so)"),
            "std::function<void (int)>::operator()(int)|/usr/lib/x.so|0");
}

profile::Function function_of(const ForeignFrame& frame) {
  ForeignProfile out("test");
  return out.profile.functions[out.profile.frames[out.frame(frame)].function];
}

TEST(ForeignFrames, WithLinesAreOfSourceWhateverItsFileIsCalled) {
  EXPECT_EQ(function_of({.name = "work", .file = "/usr/local/bin/mytool", .line = 7}).kind, FunctionKind::kPython);
  EXPECT_EQ(function_of({.name = "work", .file = "app.js", .first_line = 5}).kind, FunctionKind::kPython);
  EXPECT_EQ(function_of({.name = "work", .file = "app.py"}).kind, FunctionKind::kPython);
  // AND of libraries, and of files without lines, they are not
  EXPECT_EQ(function_of({.name = "f", .file = "/usr/bin/python3.12"}).kind, FunctionKind::kNative);
  EXPECT_EQ(function_of({.name = "f", .file = "/lib/libc.so.6", .line = 3}).kind, FunctionKind::kNative);
  EXPECT_EQ(function_of({.name = "f", .file = "[vdso]", .line = 3}).kind, FunctionKind::kNative);
}

TEST(ForeignFrames, OfTheSourceOfMachineCodeHaveItsLines) {
  const profile::Function function = function_of({.name = "f", .file = "/src/f.c", .line = 3});
  EXPECT_EQ(function.kind, FunctionKind::kNative);
  EXPECT_EQ(function.source, function.file);
}

TEST(ForeignFrames, OfAScriptGoThroughEveryFormatThatHasLines) {
  // GIVEN a script without an ending, and a library WHEN they go through a format THEN one is Python, the other native
  for (const char* format : {"speedscope", "firefox", "pprof", "collapsed"}) {
    SCOPED_TRACE(format);
    profile::Profile drawn =
        profile::testing::draw_profile("<module>(/usr/bin/tool:30 def 1);work(/usr/bin/tool:7 def 5);!f(/lib/x.so) 1");
    const Result<profile::Profile> read = read_profile(write_as(find_writer(format, "").value(), drawn, "out").value());
    ASSERT_TRUE(read.ok()) << read.error().message;
    const auto kind_of = [&](std::string_view name) {
      return read.value().functions[profile::testing::function_named(read.value(), name)].kind;
    };
    EXPECT_EQ(kind_of("<module>"), FunctionKind::kPython);
    EXPECT_EQ(kind_of("work"), FunctionKind::kPython);
    EXPECT_EQ(kind_of("f"), FunctionKind::kNative);
  }
}

TEST(ForeignFormats, TellOfWhichTimeTheyAreIfTheyDo) {
  // GIVEN CPU time WHEN it goes through a format THEN that it is CPU time is known of those that say so
  using Case = std::pair<std::string_view, std::string_view>;
  for (const auto& [format, mode] : {Case{"firefox", "cpu"}, Case{"pprof", "cpu"}, Case{"vmprof", "cpu"},
                                     Case{"speedscope", ""}, Case{"collapsed", ""}}) {
    profile::Profile drawn = profile::testing::draw_profile("main(app.py:3 def 1)  5");
    drawn.set_meta("rate_hz", "1000");
    const Result<profile::Profile> read = read_profile(write_as(find_writer(format, "").value(), drawn, "out").value());
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read.value().meta_value("mode"), mode) << format;
  }
}

TEST(ForeignFormats, DoNotMakeCpuTimeOfOtherTime) {
  // GIVEN profiles of other tools, of all time and of time that they do not tell of WHEN they go through a format
  using Case = std::pair<std::string_view, std::string_view>;
  for (const std::string_view mode : {"wall", ""})
    for (const auto& [format, known] : {Case{"firefox", ""}, Case{"pprof", mode}, Case{"speedscope", ""}}) {
      profile::Profile drawn = profile::testing::draw_profile("main(app.py:3 def 1)  5");
      drawn.set_meta("format", "mojo 3");
      if (!mode.empty()) drawn.set_meta("mode", mode);
      const Result<profile::Profile> read =
          read_profile(write_as(find_writer(format, "").value(), drawn, "out").value());
      ASSERT_TRUE(read.ok()) << read.error().message;
      // THEN nobody takes it for CPU time
      EXPECT_FALSE(profile::is_cpu_time(read.value())) << format << mode;
      EXPECT_EQ(read.value().meta_value("mode"), known) << format;
      EXPECT_EQ(read.value().samples.weight_ns, drawn.samples.weight_ns);
    }
}

}  // namespace
}  // namespace plimsoll::formats
