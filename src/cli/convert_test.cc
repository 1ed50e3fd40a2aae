// cli/convert_test.cc: `plimsoll convert` from the words to the file.
#include "cli/commands.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/exit_code.h"
#include "cli/testing.h"
#include "profile/testing.h"

namespace plimsoll::cli {
namespace {

using testing::FakeConsole;

std::string temporary(std::string_view name) { return ::testing::TempDir() + "convert_test_" + std::string(name); }

std::string content(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

FakeConsole console_with_profile() {
  FakeConsole console;
  console.files["app.plim"] = [] { return profile::testing::draw_profile("main;work 10"); };
  console.files["empty.plim"] = [] { return profile::testing::draw_profile(""); };
  return console;
}

TEST(Convert, TakesTheFormatFromTheName) {
  FakeConsole console = console_with_profile();
  const std::string out = temporary("a.collapsed");
  EXPECT_EQ(testing::run_words(make_convert(), {"convert", "app.plim", "-o", out}, console), kFine) << console.err;
  EXPECT_NE(content(out).find("main;work"), std::string::npos) << content(out);
  EXPECT_EQ(console.out, "");
  EXPECT_TRUE(console.err.starts_with("wrote " + out + " (collapsed, ")) << console.err;
  std::filesystem::remove(out);
}

TEST(Convert, WritesToStandardOutput) {
  FakeConsole console = console_with_profile();
  EXPECT_EQ(testing::run_words(make_convert(), {"convert", "app.plim", "-f", "collapsed", "-o", "-"}, console), kFine);
  EXPECT_NE(console.out.find("main;work"), std::string::npos) << console.out;
  EXPECT_EQ(console.err, "");
}

TEST(Convert, SaysThatAProfileEndsEarly) {
  FakeConsole console;
  console.files["cut.plim"] = [] {
    profile::Profile profile = profile::testing::draw_profile("main;work 10");
    profile.complete = false;
    return profile;
  };
  EXPECT_EQ(testing::run_words(make_convert(), {"convert", "cut.plim", "-f", "collapsed", "-o", "-"}, console), kFine);
  EXPECT_EQ(console.err, "cut.plim ends early: the program was killed or is still running\n");
  EXPECT_NE(console.out.find("main;work"), std::string::npos) << console.out;
}

TEST(Convert, LeavesOutNativeFunctionsOrFoldsThem) {
  FakeConsole console;
  console.files["app.plim"] = [] {
    profile::Profile profile =
        profile::testing::draw_profile("!eval(python:0);main;!call(python:0);!write(c.so:0);!flush(c.so:0)  10");
    profile.meta.emplace_back("native", "python");
    return profile;
  };
  const auto functions = [&](const std::string& option) {
    console.out.clear();
    testing::run_words(make_convert(), {"convert", "app.plim", "-f", "collapsed", "-o", "-", option}, console);
    std::string found;
    for (const std::string_view name : {"eval", "main", "call", "write", "flush"})
      if (console.out.find(name) != std::string::npos) found += std::string(name) + " ";
    return found;
  };
  EXPECT_EQ(functions("--no-native"), "main ");
  EXPECT_EQ(functions("--fold-native"), "main write ");
}

TEST(Convert, AProfileOfAllocationsAloneIsWrittenWhereTheyHaveAPlace) {
  FakeConsole console;
  console.files["memory.bin"] = [] {
    profile::Profile profile = profile::testing::draw_profile("main 1");
    profile.samples = {};
    profile.is_exact = true;
    profile::AllocationRow row;
    row.thread = ThreadId{0};
    row.stack = StackId{0};
    row.size = 100;
    profile.allocations = {row};
    return profile;
  };
  const auto convert = [&](const std::string& format) {
    return testing::run_words(make_convert(), {"convert", "memory.bin", "-f", format, "-o", "-"}, console);
  };
  EXPECT_EQ(convert("collapsed"), kNoSamples);
  EXPECT_EQ(console.out, "");
  EXPECT_EQ(convert("firefox"), kFine) << console.err;
  EXPECT_EQ(convert("pprof-heap"), kFine) << console.err;
}

TEST(Convert, AsksOfATagWhatTheFormatHolds) {
  // GIVEN a sample of time without tags, and an allocation with one
  FakeConsole console;
  console.files["app.plim"] = [] {
    profile::Profile profile = profile::testing::draw_profile("main 1");
    profile.allocation_distance = 100;
    profile::AllocationRow row;
    row.thread = ThreadId{0};
    row.stack = StackId{0};
    row.size = row.chance_bytes = 1000;
    row.tags = profile.tag_sets.intern({{profile.strings.intern("job"), profile.strings.intern("index")}});
    profile.allocations = {row};
    return profile;
  };
  const auto convert = [&](const std::string& format, const std::string& tag) {
    console.out.clear();
    return testing::run_words(make_convert(), {"convert", "app.plim", "-f", format, "--tag", tag, "-o", "-"}, console);
  };
  // WHEN either part is written THEN it is where it has something, and where it has not, nothing is
  for (const char* format : {"pprof-heap", "firefox", "flamegraph"})
    EXPECT_EQ(convert(format, "job"), kFine) << format << console.err;
  EXPECT_EQ(convert("collapsed", "job"), kNoSamples);
  EXPECT_EQ(convert("collapsed", "job="), kFine) << console.err;
  console.err.clear();
  EXPECT_EQ(convert("pprof-heap", "job="), kNoSamples);
  EXPECT_EQ(console.out, "");
  EXPECT_EQ(console.err, "no allocation of app.plim is left to show\n");
}

TEST(Convert, NeedsAFormatForStandardOutput) {
  FakeConsole console = console_with_profile();
  EXPECT_EQ(testing::run_words(make_convert(), {"convert", "app.plim", "-o", "-"}, console), kUsage);
  EXPECT_NE(console.err.find("add -f with one of flamegraph, speedscope"), std::string::npos) << console.err;
}

TEST(Convert, DoesNotGarbleATerminal) {
  FakeConsole console = console_with_profile();
  console.surroundings.is_tty = true;
  EXPECT_EQ(testing::run_words(make_convert(), {"convert", "app.plim", "-f", "pprof", "-o", "-"}, console), kUsage);
  EXPECT_EQ(console.out, "");
}

TEST(Convert, RefusesToWriteOverItsInput) {
  // GIVEN a profile on disk
  FakeConsole console = console_with_profile();
  const std::string path = temporary("in.plim");
  std::ofstream(path) << "profile";
  console.files[path] = console.files["app.plim"];
  // WHEN it is to be converted into itself, THEN nothing is written
  EXPECT_EQ(testing::run_words(make_convert(), {"convert", path, "-f", "collapsed", "-o", path}, console), kUsage);
  EXPECT_EQ(content(path), "profile");
  std::filesystem::remove(path);
}

TEST(Convert, RefusesAnUnknownFormat) {
  FakeConsole console = console_with_profile();
  EXPECT_EQ(testing::run_words(make_convert(), {"convert", "app.plim", "-o", "x", "-f", "svg"}, console), kUsage);
  EXPECT_EQ(testing::run_words(make_convert(), {"convert", "app.plim", "-o", "x.svg"}, console), kUsage);
}

TEST(Convert, WritesNothingForAProfileWithoutSamples) {
  FakeConsole console = console_with_profile();
  const std::string out = temporary("empty.collapsed");
  EXPECT_EQ(testing::run_words(make_convert(), {"convert", "empty.plim", "-o", out}, console), kNoSamples);
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST(Convert, NeedsAnOutput) {
  FakeConsole console = console_with_profile();
  EXPECT_EQ(testing::run_words(make_convert(), {"convert", "app.plim"}, console), kUsage);
  EXPECT_NE(console.err.find("--output is required"), std::string::npos) << console.err;
}

}  // namespace
}  // namespace plimsoll::cli
