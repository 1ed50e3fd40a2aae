// formats/chrometrace/reader_test.cc: traces drawn as text, V8's samples, and files that end early.
#include "formats/chrometrace/reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sstream>

#include "formats/input.h"
#include "profile/testing.h"

namespace plimsoll::formats::chrometrace {
namespace {

using profile::testing::stacks_of;
using Texts = std::vector<std::string>;
using Numbers = std::vector<std::int64_t>;

// Events drawn a line each, "X START DURATION NAME" or "B|E TIME NAME" in microseconds; "tid|" before the line puts it
// on that thread, else it is on thread 1 of process 7.
std::string draw_events(const std::string& drawing) {
  std::string text;
  std::istringstream lines(drawing);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string phase, name, tid = "1";
    double at = 0, duration = 0;
    if (!(words >> phase)) continue;
    if (phase.ends_with('|')) {
      tid = phase.substr(0, phase.size() - 1);
      words >> phase;
    }
    words >> at;
    if (phase == "X") words >> duration;
    std::getline(words >> std::ws, name);
    text += fmt::format(R"({}{{"ph":"{}","pid":7,"tid":{},"ts":{},"dur":{},"name":"{}"}})", text.empty() ? "" : ",\n",
                        phase, tid, at, duration, name);
  }
  return text;
}

profile::Profile read_whole(const std::string& text) {
  EXPECT_TRUE(is_chrome_trace(text));
  Result<profile::Profile> read_back = read_profile(text);
  EXPECT_TRUE(read_back.ok()) << read_back.error().message;
  return read_back.ok() ? read_back.take() : profile::Profile{};
}

TEST(ChromeTrace, TellsStacksByTheNestingOfItsEvents) {
  // GIVEN calls as viztracer writes them, the inner ones first, and one told by its begin and its end
  const profile::Profile profile = read_whole(R"({"traceEvents":[)" + draw_events(R"(
      X 1010 20 work (app.py:5)
      X 1000 50 main (app.py:1)
      B 1035 wait
      E 1045
      X 1100 5 main (app.py:1)
  )") + R"(,{"ph":"M","pid":7,"tid":1,"name":"thread_name","args":{"name":"MainThread"}},
           {"ph":"M","pid":7,"name":"process_name","args":{"name":"app.py"}}],"displayTimeUnit":"us"})");
  // WHEN they are read THEN each stretch of time has its stack, and nothing is where no event was
  EXPECT_EQ(stacks_of(profile), (Texts{"main", "main;work", "main", "main;wait", "main", "main"}));
  EXPECT_EQ(profile.samples.weight_ns, (Numbers{10'000, 20'000, 5'000, 10'000, 5'000, 5'000}));
  EXPECT_EQ(profile.samples.time_ns, (Numbers{10'000, 30'000, 35'000, 45'000, 50'000, 105'000}));
  const profile::Frame& work = profile.frames[profile.stacks[profile.samples.stack[1]].frame];
  // AND the line of a call is that of its function, of which the file does not tell what line ran
  EXPECT_EQ(work.line, 0U);
  EXPECT_EQ(profile.functions[work.function].first_line, 5U);
  EXPECT_EQ(profile.strings[profile.functions[work.function].file], "app.py");
  EXPECT_EQ(profile.threads.at(0).name, "MainThread");
  EXPECT_EQ(profile.threads.at(0).os_tid, 1);
  EXPECT_EQ(profile.processes.at(0).name, "app.py");
  EXPECT_TRUE(profile.complete);
  EXPECT_TRUE(profile.drops.empty());
}

TEST(ChromeTrace, KeepsThreadsApart) {
  // GIVEN events of two threads in one order WHEN they are read THEN none is nested in one of the other thread
  const profile::Profile profile = read_whole("[" + draw_events("X 0 10 a\n 2| X 2 4 b\n 2| B 7 c\n 2| E 9") + "]");
  EXPECT_EQ(profile.threads.size(), 2U);
  EXPECT_EQ(stacks_of(profile), (Texts{"a", "b", "c"}));
  EXPECT_EQ(profile.samples.weight_ns, (Numbers{10'000, 4'000, 2'000}));
}

TEST(ChromeTrace, CountsWhatCannotHaveBeen) {
  // GIVEN an event that ends after the one around it, and an end without a start
  const profile::Profile profile = read_whole("[" + draw_events("X 0 10 a\n X 5 8 b\n E 20 c") + "]");
  // WHEN they are read THEN the inner one is cut, and both are told
  EXPECT_EQ(stacks_of(profile), (Texts{"a", "a;b"}));
  EXPECT_EQ(profile.samples.weight_ns, (Numbers{5'000, 5'000}));
  ASSERT_EQ(profile.drops.size(), 2U);
  EXPECT_EQ(profile.drops[0].count, 1U);
  EXPECT_EQ(profile.drops[1].count, 1U);
  EXPECT_EQ(profile.drops[1].cpu_ns, 3'000);
}

// V8's samples, as the developer tools save them: the profile is of thread 1, its chunks come from thread 9.
constexpr std::string_view kSampled = R"json({"metadata":{"source":"DevTools"},"traceEvents":[
  {"ph":"X","pid":7,"tid":1,"ts":900,"dur":400,"name":"RunTask"},
  {"ph":"C","pid":7,"tid":1,"ts":1000,"name":"UpdateCounters","args":{"jsHeapSizeUsed":4096.0,"nodes":3,"x":"y"}},
  {"ph":"P","pid":7,"tid":1,"ts":1000,"id":"0x1","name":"Profile","args":{"data":{"startTime":1000}}},
  {"ph":"P","pid":7,"tid":9,"ts":1100,"id":"0x1","name":"ProfileChunk","args":{"data":{"cpuProfile":{
     "nodes":[{"id":1,"callFrame":{"functionName":"(root)"}},
              {"id":2,"parent":1,"callFrame":{"functionName":"main","url":"app.js","lineNumber":3}}],
     "samples":[2,2]},"timeDeltas":[10,30]}}},
  {"ph":"P","pid":7,"tid":9,"ts":1200,"id":"0x1","name":"ProfileChunk","args":{"data":{"cpuProfile":{
     "nodes":[{"id":3,"parent":2,"callFrame":{"functionName":"work","url":"app.js","lineNumber":7}}],
     "samples":[3,2]},"timeDeltas":[20,50],"endTime":1150}}}]})json";

TEST(ChromeTrace, HasTheSamplesOfV8) {
  // GIVEN a profile in two chunks WHEN it is read THEN a sample weighs the time to the next, the last to the end
  const profile::Profile profile = read_whole(std::string(kSampled));
  EXPECT_EQ(stacks_of(profile), (Texts{"main", "main", "main;work", "main"}));
  EXPECT_EQ(profile.samples.weight_ns, (Numbers{30'000, 20'000, 50'000, 40'000}));
  EXPECT_EQ(profile.samples.time_ns, (Numbers{140'000, 160'000, 210'000, 250'000}));
  ASSERT_EQ(profile.threads.size(), 2U);
  EXPECT_EQ(profile.threads[profile.samples.thread[0].index()].os_tid, 1);
  // AND events that last are markers, as the samples have their time already; counters are counters
  ASSERT_EQ(profile.markers.size(), 1U);
  EXPECT_EQ(profile.markers[0].name, "RunTask");
  EXPECT_EQ(profile.markers[0].duration_ns, 400'000);
  ASSERT_EQ(profile.counters.size(), 2U);
  EXPECT_EQ(profile.counters[0].name, "UpdateCounters.jsHeapSizeUsed");
  EXPECT_EQ(profile.counters[0].value, (Numbers{4096}));
}

// rspack's traces: Node's profile, put whole into one chunk.
TEST(ChromeTrace, AWholeProfileInAChunkHasAClockOfItsOwn) {
  // GIVEN a profile that the trace starts at 0, and whose own times are days later
  const profile::Profile profile = read_whole(R"json({"traceEvents":[
    {"ph":"P","pid":7,"tid":1,"ts":10,"id":1,"name":"Profile","args":{"data":{"startTime":0}}},
    {"ph":"P","pid":7,"tid":1,"ts":20,"id":1,"name":"ProfileChunk","args":{"data":{"cpuProfile":{
       "nodes":[{"id":2,"callFrame":{"functionName":"main"}}],"startTime":470029996751,"endTime":470029996851,
       "samples":[2,2]},"timeDeltas":[10,30]}}}]})json");
  // WHEN it is read THEN the last sample lasts until the end of the profile, by the same clock
  EXPECT_EQ(profile.samples.weight_ns, (Numbers{30'000, 60'000}));
  EXPECT_EQ(profile.samples.time_ns, (Numbers{40'000, 100'000}));
}

TEST(ChromeTrace, HasSamplesThatNameAFrameOfItsTable) {
  // GIVEN frames with parents, and samples as events and as rows WHEN they are read THEN they have the stacks
  const profile::Profile profile = read_whole(R"({"stackFrames":{"5":{"name":"main"},"7":{"parent":"5","name":"work"},
      "8":{"parent":9,"name":"a"},"9":{"parent":8,"name":"b"}},
      "samples":[{"cpu":0,"tid":1,"ts":1.5,"name":"cycles","sf":7,"weight":1},{"tid":1,"ts":2.5,"sf":5}],
      "traceEvents":[{"ph":"P","pid":7,"tid":3,"ts":1,"sf":"5"},{"ph":"P","pid":7,"tid":3,"ts":4,"sf":8}]})");
  EXPECT_EQ(stacks_of(profile), (Texts{"main", "", "main;work", "main"}));
  EXPECT_EQ(profile.samples.weight_ns, (Numbers{3'000, 0, 1'000, 0}));
}

TEST(ChromeTrace, MayEndAnywhere) {
  // GIVEN an array of events without its end, which the format allows
  const std::string events = draw_events("X 0 10 a\n B 20 b\n X 24 6 c");
  for (const char* end : {"", ",", ",\n", "]", ",]", "\n]"}) {
    const profile::Profile profile = read_whole("[" + events + end);
    // THEN it is whole, and what has no end ends with the trace
    EXPECT_TRUE(profile.complete) << end;
    EXPECT_EQ(stacks_of(profile), (Texts{"a", "b", "b;c"})) << end;
    EXPECT_EQ(profile.samples.weight_ns, (Numbers{10'000, 4'000, 6'000})) << end;
  }
  // GIVEN an object, or an event, that is cut THEN what was whole is there, and the profile is not complete
  for (const std::string& cut : {R"({"traceEvents":[)" + events, "[" + events + R"(,{"ph":"X","na)"}) {
    const profile::Profile profile = read_whole(cut);
    EXPECT_FALSE(profile.complete) << cut;
    EXPECT_EQ(profile.samples.size(), 3U) << cut;
  }
}

TEST(ChromeTrace, CutAtAnyByteIsAnErrorOrAProfile) {
  for (std::size_t size = 0; size < kSampled.size(); ++size) {
    const Result<profile::Profile> cut = read(kSampled.substr(0, size));
    if (cut.ok()) {
      EXPECT_FALSE(cut.value().complete) << size;
    }
  }
}

TEST(ChromeTrace, WithAnythingInItsPlacesIsAnErrorOrAProfile) {
  // GIVEN traces that are twisted WHEN they are read THEN nothing worse than an error happens
  for (const std::string_view text :
       {R"({"traceEvents":7})", R"([])", R"([7,null,{"ph":3}])", "[}", R"({"traceEvents":[]})"})
    EXPECT_FALSE(read(text).ok()) << text;
  for (const std::string_view text :
       {R"([{"ph":"X","ts":1e300,"dur":-5},{"ph":"X","ts":-1e300,"dur":1e300},{"ph":"B","ts":0}])",
        R"([{"ph":"P","name":"ProfileChunk","ts":1,"args":{"data":{"cpuProfile":{"samples":[1,{}],"nodes":[7]}}}}])",
        R"({"traceEvents":[{"ph":"P","ts":1,"sf":1}],"stackFrames":{"1":{"parent":1},"2":7}})"})
    EXPECT_TRUE(read(text).ok()) << text;
}

}  // namespace
}  // namespace plimsoll::formats::chrometrace
