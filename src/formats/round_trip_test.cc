// formats/round_trip_test.cc: what is written in a foreign format is read again, and weighs the same in every view.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "formats/input.h"
#include "formats/registry.h"
#include "profile/flat.h"
#include "profile/testing.h"
#include "profile/tree.h"

namespace plimsoll::formats {
namespace {

using profile::testing::draw_profile;

// Time by function, from the flat view: own time and total time.
using Times = std::map<std::string, std::pair<std::int64_t, std::int64_t>>;
Times times_of(const profile::Profile& profile) {
  Times times;
  for (const profile::FlatRow& row : flat(profile)) {
    const profile::Function& function = profile.functions[row.function];
    auto& [self, total] =
        times[std::string(profile.strings[function.name]) + " " + std::string(profile.strings[function.file])];
    self += row.self_ns;
    total += row.total_ns;
  }
  return times;
}

std::int64_t total_of_tree(const profile::Profile& profile) {
  const profile::Tree tree = profile::tree(profile, profile::Granularity::kFunction);
  std::int64_t self = 0;
  for (const profile::TreeNode& node : tree.nodes) self += node.self_ns;
  EXPECT_EQ(self, tree.nodes[0].total_ns);
  return self;
}

// A weight is right in every view of one profile: samples, call tree, functions, threads.
void expect_one_weight(const profile::Profile& profile, std::int64_t expected, std::int64_t tolerance) {
  EXPECT_LE(std::abs(profile.sampled_ns() - expected), tolerance);
  EXPECT_EQ(total_of_tree(profile), profile.sampled_ns());
  std::int64_t threads = 0;
  for (const profile::Thread& thread : profile.threads) threads += thread.cpu_ns;
  EXPECT_EQ(threads, profile.sampled_cpu_ns());
}

struct Case {
  std::string_view format;
  std::int64_t tolerance_ns = 0;  // of the sum, and of each function
  std::string_view read_as = format;
};
constexpr Case kFormats[] = {{"speedscope"}, {"firefox"},          {"jslb", 0, "firefox"},
                             {"pprof"},      {"collapsed", 1'000}, {"vmprof", 1'000'000}};

profile::Profile through(const Case& one, profile::Profile profile) {
  const Writer writer = find_writer(one.format, "").take();
  Result<profile::Profile> read = read_profile(write_as(writer, profile, "out").value());
  EXPECT_TRUE(read.ok()) << one.format << ": " << read.error().message;
  EXPECT_EQ(read.value().meta_value("format").substr(0, one.read_as.size()), one.read_as);
  return read.take();
}

TEST(RoundTrip, KeepsTheTimeOfEveryFunction) {
  // GIVEN Python, native and synthetic frames, recursion, awkward names WHEN they go through each format
  constexpr std::string_view kDrawing = R"(
    <module>(shop/app.py:9 def 1);handle(shop/app.py:2 def 1);parse(shop/parse.py:2 def 1)  10.25
    <module>(shop/app.py:9 def 1);handle(shop/app.py:2 def 1);parse(shop/parse.py:3 def 1)  9.75
    <module>(shop/app.py:9 def 1);fib(shop/app.py:6 def 5);fib(shop/app.py:6 def 5)  5
    <module>(shop/app.py:9 def 1);Größe(app.py:7 def 7);!memcpy(libc.so)  0.333
    [truncated stack];a"b\c'd<e>&,__proto__(shop/app.py:8 def 8)  2
    -  0.75
  )";
  const profile::Profile original = draw_profile(kDrawing);
  for (const Case& one : kFormats) {
    SCOPED_TRACE(one.format);
    profile::Profile drawn = draw_profile(kDrawing);
    drawn.set_meta("rate_hz", "10000");  // where weights must be made of periods, those are short
    const profile::Profile read = through(one, std::move(drawn));
    // THEN functions have the same times, and the profile weighs the same in every view
    expect_one_weight(read, original.sampled_ns(), one.tolerance_ns);
    const Times expected = times_of(original);
    const Times times = times_of(read);
    EXPECT_EQ(times.size(), expected.size());
    for (const auto& [name, both] : expected) {
      const auto found = times.find(name);
      ASSERT_NE(found, times.end()) << name;
      EXPECT_LE(std::abs(found->second.first - both.first), 2 * one.tolerance_ns) << name;
      EXPECT_LE(std::abs(found->second.second - both.second), 2 * one.tolerance_ns) << name;
    }
  }
}

TEST(RoundTrip, KeepsLinesThreadsAndCounters) {
  // GIVEN two threads, lines, a counter and a marker WHEN they go through the Firefox format THEN they are all there
  profile::Profile original = draw_profile(R"(
    main(app.py:3 def 1);work(app.py:12 def 10)  5 @6
    main(app.py:3 def 1);work(app.py:13 def 10)  4 @11
    worker | run(app.py:22 def 20)  3 @9
    worker | run(app.py:23 def 20)  2:sleep @12
  )");
  original.counters.push_back({ProcessId{0}, "rss", "bytes", {0, 5'000'000}, {100, 90}});
  original.markers.push_back({1'000'000, 2'000'000, ThreadId{1}, "GC", {{"generation", "2"}}});
  original.sources.push_back({"app.py", "def main():\n"});
  const std::int64_t all = original.sampled_ns();
  const profile::Profile read = through({"firefox", 0}, std::move(original));
  EXPECT_EQ(read.sampled_ns(), all);
  ASSERT_EQ(read.threads.size(), 2U);
  EXPECT_EQ(read.threads[1].name, "worker");
  EXPECT_EQ(read.samples.time_ns, (std::vector<std::int64_t>{6'000'000, 11'000'000, 9'000'000, 12'000'000}));
  EXPECT_EQ(read.samples.activity[3], Activity::kOther);
  EXPECT_EQ(read.start_realtime_ns / 1'000'000, 1'767'323'045'000);
  EXPECT_EQ(read.frames[read.stacks[read.samples.stack[1]].frame].line, 13U);
  ASSERT_EQ(read.counters.size(), 1U);
  EXPECT_EQ(read.counters[0].value, (std::vector<std::int64_t>{100, 90}));
  ASSERT_EQ(read.markers.size(), 1U);
  EXPECT_EQ(read.markers[0].name, "GC");
  EXPECT_EQ(read.markers[0].fields, (std::vector<std::pair<std::string, std::string>>{{"generation", "2"}}));
  ASSERT_EQ(read.sources.size(), 1U);
}

TEST(RoundTrip, KeepsTheWeightOfGeneratedProfilesFromFormatToFormat) {
  // GIVEN generated profiles WHEN they go through every format and then through every other THEN the weight stays
  for (const std::size_t samples : {1U, 10U, 300U}) {
    const std::int64_t all = profile::testing::generated_profile(samples, samples).sampled_ns();
    for (const Case& first : kFormats) {
      for (const Case& second : kFormats) {
        SCOPED_TRACE(std::string(first.format) + " then " + std::string(second.format));
        profile::Profile read = through(second, through(first, profile::testing::generated_profile(samples, samples)));
        expect_one_weight(read, all, first.tolerance_ns + second.tolerance_ns);
      }
    }
  }
}

profile::Profile read_text(std::string_view text) {
  Result<profile::Profile> read = read_profile(text);
  EXPECT_TRUE(read.ok()) << read.error().message;
  return read.ok() ? read.take() : profile::Profile{};
}

TEST(ForeignFormats, AreReadAsTheirToolsWriteThem) {
  // GIVEN files as other tools write them WHEN they are read THEN functions and times are theirs
  const auto expect_times = [](std::string_view text, const Times& expected) {
    EXPECT_EQ(times_of(read_text(text)), expected) << text;
  };
  // Austin: process, thread, file:function:line, microseconds
  expect_times("# austin: 3.4.1\n# mode: wall\nP12;T34;/srv/app.py:main:3;/srv/app.py:work:7 1500\n",
               {{"main /srv/app.py", {0, 1'500'000}}, {"work /srv/app.py", {1'500'000, 1'500'000}}});
  // py-spy: function (file:line), and a line that is none
  expect_times("main (app.py:3);work (app.py:7) 12\n\nnonsense\n",
               {{"main app.py", {0, 12'000}}, {"work app.py", {12'000, 12'000}}});
  // speedscope, evented
  expect_times(R"({"$schema":"https://www.speedscope.app/file-format-schema.json",
    "shared":{"frames":[{"name":"main"},{"name":"work","file":"a.c"}]},
    "profiles":[{"type":"evented","name":"t","unit":"seconds","startValue":0,"endValue":3,
      "events":[{"type":"O","frame":0,"at":0},{"type":"O","frame":1,"at":1},{"type":"C","frame":1,"at":3},
                {"type":"C","frame":0,"at":3}]}]})",
               {{"main ", {1'000'000'000, 3'000'000'000}}, {"work a.c", {2'000'000'000, 2'000'000'000}}});
  // V8
  expect_times(R"~({"nodes":[{"id":1,"callFrame":{"functionName":"(root)"},"children":[2]},
     {"id":2,"callFrame":{"functionName":"main","url":"a.js","lineNumber":4},"children":[3]},
     {"id":3,"callFrame":{"functionName":"work","url":"a.js","lineNumber":9}}],
     "startTime":0,"endTime":70,"samples":[2,3,2],"timeDeltas":[10,20,30]})~",
               {{"main a.js", {30'000, 60'000}}, {"work a.js", {30'000, 30'000}}});
  // The Firefox Profiler before shared tables: a stack's parent is a row, weights are the interval
  expect_times(
      R"~({"meta":{"interval":2,"preprocessedProfileVersion":47,"startTime":0},"threads":[{"name":"t","pid":"7",
     "samples":{"stack":[1,0],"time":[1,3],"weight":null,"length":2},
     "stackTable":{"frame":[0,1],"prefix":[null,0],"length":2},"frameTable":{"func":[0,1],"line":[null,7],"length":2},
     "funcTable":{"name":[0,1],"fileName":[2,2],"lineNumber":[1,5],"length":2},"stringArray":["main","work","app.py"]}]})~",
      {{"main app.py", {2'000'000, 4'000'000}}, {"work app.py", {2'000'000, 2'000'000}}});
}

TEST(ForeignFormats, ThatAreCutOrTwistedAreErrorsOrProfiles) {
  // GIVEN files of each format, cut anywhere WHEN they are read THEN nothing worse than an error happens
  for (const Case& one : kFormats) {
    profile::Profile profile = draw_profile("main(app.py:3 def 1);work(app.py:12 def 10)  5 @6\n t | a;b 2");
    const Writer writer = find_writer(one.format, "").take();
    std::string bytes = write_as(writer, profile, "out").value();
    for (std::size_t size = 0; size < bytes.size(); ++size) (void)read_profile(std::string_view(bytes).substr(0, size));
  }
  // indices that point nowhere, circles, numbers that are none
  for (const std::string_view text : {
           R"~({"nodes":[{"id":1,"children":[2],"callFrame":{}},{"id":2,"children":[1]}],"samples":[1,2,9],
               "timeDeltas":[1,2,"x"]})~",
           R"~({"$schema":"https://www.speedscope.app/file-format-schema.json",
               "profiles":[{"unit":"seconds","samples":[[9,-1,"x"]]}]})~",
           R"~({"meta":{"preprocessedProfileVersion":66},"threads":[{"samples":{"stack":[5,-1,"x"]}}],
               "shared":{"stackTable":{"frame":[3,"x"],"prefixOffset":[7,-3]}}})~"})
    EXPECT_TRUE(read_profile(text).ok()) << text;
}

}  // namespace
}  // namespace plimsoll::formats
