// formats/firefox/writer_test.cc: drawn profiles as files of the Firefox Profiler.
#include "formats/firefox/writer.h"

#include <numeric>

#include "formats/testing.h"
#include "profile/testing.h"

namespace plimsoll::formats::firefox {
namespace {

using boost::json::value;
using profile::testing::draw_profile;
using profile::testing::kMillisecond;
using testing::at;
using testing::int_at;
using testing::json_at;
using testing::parse_json;
using testing::size_at;
using testing::text_at;

// The text that an index somewhere in the file stands for.
std::string string_at(const value& file, std::string_view pointer) {
  return text_at(file, "/shared/stringArray/" + std::to_string(int_at(file, pointer)));
}

using Numbers = std::vector<double>;

Numbers numbers_at(const value& file, std::string_view pointer) {
  Numbers numbers;
  for (const value& number : at(file, pointer).as_array()) numbers.push_back(number.to_number<double>());
  return numbers;
}

TEST(Firefox, WritesStacksAsATreeOfFrames) {
  // GIVEN two stacks that share their callers WHEN they are written THEN each row points back at its parent
  const value file = parse_json(write(draw_profile(R"(
    main(app.py:1 def 1);work(app.py:7 def 5);inner   1
    main(app.py:1 def 1);other                        1
  )")));
  EXPECT_EQ(int_at(file, "/meta/preprocessedProfileVersion"), 66);
  EXPECT_EQ(json_at(file, "/shared/stackTable"), R"({"frame":[0,1,2,3],"prefixOffset":[0,1,1,3],"length":4})");
  EXPECT_EQ(json_at(file, "/shared/frameTable/line"), "[1,7,null,null]");
  EXPECT_EQ(string_at(file, "/shared/funcTable/name/1"), "work");
  EXPECT_EQ(int_at(file, "/shared/funcTable/lineNumber/1"), 5);
  EXPECT_EQ(json_at(file, "/threads/0/samples/stack"), "[null,2,3]");
}

TEST(Firefox, WeighsSamplesByMeasuredCpuTime) {
  // GIVEN samples of uneven CPU time WHEN they are written THEN weights are milliseconds, and CPU deltas nanoseconds
  profile::Profile profile = draw_profile("main  1.25 @10\n main  0.5 @30.0004");
  profile.threads[0].start_ns = 4 * kMillisecond;
  const value file = parse_json(write(profile));
  EXPECT_EQ(text_at(file, "/threads/0/samples/weightType"), "tracing-ms");
  EXPECT_EQ(numbers_at(file, "/threads/0/samples/weight"), (Numbers{0, 1.25, 0.5}));
  EXPECT_EQ(json_at(file, "/threads/0/samples/threadCPUDelta"), "[0,1250000,500000]");
  EXPECT_EQ(text_at(file, "/meta/sampleUnits/threadCPUDelta"), "ns");
  // AND times are differences, rounded to microseconds, from the moment when the thread was first seen
  EXPECT_EQ(numbers_at(file, "/threads/0/samples/timeDeltas"), (Numbers{4, 6, 20}));
  EXPECT_EQ(json_at(file, "/threads/0/samples/length"), "3");
}

TEST(Firefox, StartsWithTheIntervalOfTheFirstSample) {
  // GIVEN a thread that was first seen by its first sample
  profile::Profile profile = draw_profile("main  3 @10");
  profile.threads[0].start_ns = 10 * kMillisecond;
  // WHEN it is written THEN the sample's CPU time fits between its start and the sample
  const value file = parse_json(write(profile));
  EXPECT_EQ(numbers_at(file, "/threads/0/samples/timeDeltas"), (Numbers{7, 3}));
}

TEST(Firefox, EndsAfterTheLastSample) {
  // GIVEN a session that ends with its last sample WHEN it is written THEN the sample is within the range
  const value file = parse_json(write(draw_profile("main  1 @10")));
  EXPECT_GT(at(file, "/meta/profilingEndTime").to_number<double>(), 10.0);
}

TEST(Firefox, DoesNotAddUpTheRoundingOfTimes) {
  // GIVEN 1000 samples at odd nanoseconds WHEN they are written THEN the last one's time is right to a microsecond
  profile::Profile profile = draw_profile("main  1");
  for (std::int64_t i = 1; i < 1000; ++i)
    profile.samples.push_back(kMillisecond + i * 1'000'400, ThreadId{0}, profile.samples.stack[0], 1);
  const value file = parse_json(write(profile));
  const Numbers deltas = numbers_at(file, "/threads/0/samples/timeDeltas");
  EXPECT_NEAR(std::accumulate(deltas.begin(), deltas.end(), 0.0), 1 + 999 * 1.0004, 0.0006);
}

TEST(Firefox, OrdersThreadsByProcessAndMainThreadFirst) {
  // GIVEN a process whose main thread was seen last
  profile::Profile profile = draw_profile("worker | run  5\n MainThread | main  1\n child@200 | run  2");
  profile.threads[0].is_main = false;
  profile.threads[1].is_main = true;
  // WHEN it is written THEN the main thread leads, and the busiest thread is selected
  const value file = parse_json(write(profile));
  EXPECT_EQ(text_at(file, "/threads/0/name"), "MainThread");
  EXPECT_EQ(text_at(file, "/threads/1/name"), "worker");
  EXPECT_EQ(text_at(file, "/threads/2/name"), "child");
  EXPECT_EQ(text_at(file, "/threads/2/pid"), "200");
  EXPECT_EQ(int_at(file, "/threads/2/tid"), 200);
  EXPECT_EQ(json_at(file, "/meta/initialSelectedThreads"), "[1]");
  EXPECT_EQ(json_at(file, "/meta/initialVisibleThreads"), "[1,2,0]");
}

TEST(Firefox, GivesThreadsOfOneKernelIdDifferentIds) {
  // GIVEN a kernel id that was used again WHEN the threads are written THEN the second one's id is made its own
  profile::Profile profile = draw_profile("main  1\n a | run  1\n b | run  1");
  profile.threads[2].os_tid = profile.threads[1].os_tid;
  const value file = parse_json(write(profile));
  EXPECT_EQ(json_at(file, "/threads/1/tid"), "101");
  EXPECT_EQ(json_at(file, "/threads/2/tid"), R"("101.1")");
}

TEST(Firefox, WritesAnyNumberOfThreadsOfOneIdAndOfFieldsOfOneMarker) {
  // GIVEN 100,000 threads of one kernel id, and as many markers of one name, each with a field of its own
  profile::Profile profile = draw_profile("main  1");
  for (std::size_t i = 1; i < 100'000; ++i) profile.threads.push_back(profile.threads[0]);
  for (std::size_t i = 0; i < 100'000; ++i)
    profile.markers.push_back({0, 0, ThreadId{}, "note", {{"field" + std::to_string(i), "1"}}});
  // WHEN they are written (which took the better part of an hour when each was compared with all before it)
  const std::string written = write(profile);
  // THEN the last ones are there
  EXPECT_NE(written.find(".99999\""), std::string::npos);
  EXPECT_NE(written.find("\"field99999\":1"), std::string::npos);
}

TEST(Firefox, TellsPythonNativeAndProfilerFramesApart) {
  // GIVEN a stack of all three kinds WHEN it is written THEN categories, stack types and resources differ
  const value file =
      parse_json(write(draw_profile("[truncated stack];main(/a/shop/app.py:1);!memcpy(/lib/libc.so.6)  1")));
  EXPECT_EQ(json_at(file, "/shared/frameTable/category"), "[0,1,2]");
  EXPECT_EQ(json_at(file, "/shared/funcTable/isJS"), "[false,true,false]");
  EXPECT_EQ(json_at(file, "/shared/funcTable/relevantForJS"), "[true,false,false]");
  EXPECT_EQ(json_at(file, "/shared/funcTable/resource"), "[-1,0,1]");
  EXPECT_EQ(string_at(file, "/shared/resourceTable/name/0"), "shop");
  EXPECT_EQ(string_at(file, "/shared/resourceTable/name/1"), "libc.so.6");
  EXPECT_EQ(text_at(file, "/meta/categories/0/color"), "grey");
  EXPECT_FALSE(at(file, "/meta/usesOnlyOneStackType").as_bool());
}

TEST(Firefox, CarriesTheSources) {
  // GIVEN the text of one of two files WHEN the profile is written THEN it is in the file
  profile::Profile profile = draw_profile("main(app.py:1);other(lib.py:1)  1");
  profile.sources.push_back({"app.py", "print(\"1\")\n"});
  const value file = parse_json(write(profile));
  EXPECT_EQ(string_at(file, "/shared/sources/filename/0"), "app.py");
  EXPECT_EQ(text_at(file, "/shared/sources/content/0"), "print(\"1\")\n");
  EXPECT_TRUE(at(file, "/shared/sources/content/1").is_null());
  EXPECT_EQ(json_at(file, "/shared/funcTable/source"), "[0,1]");
}

TEST(Firefox, WritesCountersAsDifferences) {
  // GIVEN absolute values of memory in use WHEN they are written THEN the file has what was added and removed
  profile::Profile profile = draw_profile("main  1\n MainThread@200 | main  1");
  profile.counters.push_back({ProcessId{1}, "rss", "bytes", {0, kMillisecond, 2 * kMillisecond}, {1000, 1500, 1200}});
  const value file = parse_json(write(profile));
  EXPECT_EQ(json_at(file, "/counters/0/samples/count"), "[1000,500,-300]");
  EXPECT_EQ(json_at(file, "/counters/0/samples/time"), "[0,1,2]");
  EXPECT_EQ(text_at(file, "/counters/0/category"), "Memory");
  EXPECT_EQ(text_at(file, "/counters/0/pid"), "200");
  EXPECT_EQ(int_at(file, "/counters/0/mainThreadIndex"), 1);
}

TEST(Firefox, WritesMarkersWithASchemaOfTheirFields) {
  // GIVEN collections with numbers, one with a word, and an event of no thread
  profile::Profile profile = draw_profile("main  1\n worker | run  1");
  profile.markers.push_back({5 * kMillisecond,
                             kMillisecond,
                             ThreadId{1},
                             "GC",
                             {{"generation", "2"}, {"reason", "7"}, {"freed_bytes", "4096"}}});
  profile.markers.push_back({3 * kMillisecond, 0, ThreadId{1}, "GC", {{"generation", "0"}, {"reason", "asked"}}});
  profile.markers.push_back({0, 0, ThreadId{}, "start", {{"type", "x"}}});
  // WHEN they are written
  const value file = parse_json(write(profile));
  // THEN each name has a schema, with formats that fit all its values
  EXPECT_EQ(text_at(file, "/meta/markerSchema/0/name"), "plimsoll:GC");
  EXPECT_EQ(json_at(file, "/meta/markerSchema/0/fields"),
            R"([{"key":"generation","label":"generation","format":"integer"},)"
            R"({"key":"reason","label":"reason","format":"string"},)"
            R"({"key":"freed_bytes","label":"freed_bytes","format":"bytes"}])");
  // AND markers are in order of time on their thread
  EXPECT_EQ(json_at(file, "/threads/1/markers/startTime"), "[3,5]");
  EXPECT_EQ(json_at(file, "/threads/1/markers/endTime"), "[null,6]");
  EXPECT_EQ(json_at(file, "/threads/1/markers/phase"), "[0,1]");
  EXPECT_EQ(json_at(file, "/threads/1/markers/data/1"),
            R"({"type":"plimsoll:GC","generation":2,"reason":"7","freed_bytes":4096})");
  EXPECT_EQ(string_at(file, "/threads/1/markers/name/0"), "GC");
  // AND what belongs to no thread is on the first one; a field called type does not hide the schema's name
  EXPECT_EQ(json_at(file, "/threads/0/markers/data"), R"([{"type":"plimsoll:start","type_":"x"}])");
}

TEST(Firefox, TellsWhatWasDroppedAndHowTheSessionEnded) {
  // GIVEN a session that was cut short and lost samples
  profile::Profile profile = draw_profile("main  1");
  profile.complete = false;
  profile.set_meta("engine", "cpu_timer");
  profile.drops.push_back({"ring full", 3, 4 * kMillisecond});
  // WHEN it is written THEN "More info" says so
  const value file = parse_json(write(profile));
  EXPECT_EQ(json_at(file, "/meta/extra/0/entries"),
            R"([{"label":"engine","format":"string","value":"cpu_timer"},)"
            R"({"label":"recording","format":"string","value":"cut short: the program was killed, or still runs"}])");
  EXPECT_EQ(json_at(file, "/meta/extra/2/entries"),
            R"([{"label":"ring full","format":"integer","value":3},)"
            R"({"label":"ring full, CPU time","format":"duration","value":4}])");
}

TEST(Firefox, KeepsTheTimeOfDay) {
  // GIVEN the start of the session WHEN it is written THEN it is in milliseconds since 1970, and on the clock since
  // boot
  const value file = parse_json(write(draw_profile("main  1")));
  EXPECT_EQ(int_at(file, "/meta/startTime"), 1'767'323'045'000);
  EXPECT_EQ(int_at(file, "/meta/startTimeAsClockMonotonicNanosecondsSinceBoot"), 5'000'000'000);
}

TEST(Firefox, KeepsTheTimeOfTheEmptyStack) {
  // GIVEN a sample without frames WHEN it is written THEN a stack stands for it, since the viewer ignores null stacks
  const value file = parse_json(write(draw_profile("main  1\n -  2")));
  EXPECT_EQ(json_at(file, "/threads/0/samples/stack"), "[null,0,1]");
  EXPECT_EQ(json_at(file, "/shared/stackTable"), R"({"frame":[0,1],"prefixOffset":[0,0],"length":2})");
  EXPECT_EQ(string_at(file, "/shared/funcTable/name/1"), "[no stack]");
}

TEST(Firefox, WritesAFileWithoutSamples) {
  // GIVEN nothing at all WHEN it is written THEN the tables are there, and empty
  const value file = parse_json(write(profile::Profile{}));
  EXPECT_EQ(size_at(file, "/threads"), 0U);
  EXPECT_EQ(int_at(file, "/shared/stackTable/length"), 0);
}

}  // namespace
}  // namespace plimsoll::formats::firefox
