// formats/firefox/reader_test.cc: tables wherever a version has them, and weights of each type.
#include "formats/firefox/reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/firefox/writer.h"
#include "formats/input.h"
#include "profile/testing.h"

namespace plimsoll::formats::firefox {
namespace {

using profile::testing::draw_profile;
using profile::testing::kMillisecond;
using profile::testing::stacks_of;
using Texts = std::vector<std::string>;
using Numbers = std::vector<std::int64_t>;

constexpr std::string_view kTables = R"("stackTable":{"frame":[0,1],"prefix":[null,0],"length":2},
    "frameTable":{"func":[0,1],"line":[3,4],"length":2},
    "funcTable":{"name":[0,1],"fileName":[2,2],"lineNumber":[1,2],"length":2})";
constexpr std::string_view kStrings = R"("stringArray":["a","b","f.py"])";
constexpr std::string_view kSamples = R"("stack":[1,1,0],"time":[0,1,2],"weight":null,"weightType":"samples")";

// A file of one thread, with what else the thread has, and what all threads share.
std::string draw_file(std::string_view samples, const std::string& of_thread, const std::string& shared) {
  return fmt::format(R"({{"meta":{{"preprocessedProfileVersion":57,"interval":2,"startTime":0}},
      "threads":[{{"name":"T","tid":1,"pid":"1","samples":{{{},"length":3}}{}}}]{}}})",
                     samples, of_thread, shared);
}
std::string draw_file(std::string_view samples) {
  return draw_file(samples, fmt::format(",{},{}", kTables, kStrings), "");
}

profile::Profile read_whole(const std::string& text) {
  Result<profile::Profile> read_back = read_profile(text);
  EXPECT_TRUE(read_back.ok()) << read_back.error().message;
  return read_back.ok() ? read_back.take() : profile::Profile{};
}

TEST(FirefoxReader, FindsEachTableWhereItIs) {
  // GIVEN files whose threads have all tables, share all, or share the strings only, as those of CPython 3.15
  const std::string tables(kTables), strings(kStrings);
  for (const std::string& file :
       {draw_file(kSamples), draw_file(kSamples, "," + tables, R"(,"shared":{)" + strings + "}"),
        draw_file(kSamples, "", R"(,"shared":{)" + tables + "," + strings + "}")}) {
    // WHEN they are read THEN their stacks are the same
    const profile::Profile profile = read_whole(file);
    EXPECT_EQ(stacks_of(profile), (Texts{"a;b", "a;b", "a"}));
    EXPECT_TRUE(profile.drops.empty());
  }
}

TEST(FirefoxReader, CountsStacksThatAreNotThere) {
  // GIVEN samples of stacks that no table has WHEN they are read THEN that is told
  const profile::Profile profile = read_whole(draw_file(kSamples, "", ""));
  EXPECT_EQ(stacks_of(profile), (Texts{"", "", ""}));
  ASSERT_EQ(profile.drops.size(), 1U);
  EXPECT_EQ(profile.drops[0].reason, "stacks that are not in the file");
  EXPECT_EQ(profile.drops[0].count, 3U);
}

TEST(FirefoxReader, WeighsByTheTypeOfTheWeights) {
  // GIVEN rows that are one sample, several samples, or a time WHEN they are read THEN they weigh that
  const auto weights = [](std::string_view weight, std::string_view type) {
    const std::string samples =
        fmt::format(R"("stack":[1,1,0],"time":[0,1,2],"weight":{},"weightType":"{}")", weight, type);
    return read_whole(draw_file(samples)).samples.weight_ns;
  };
  EXPECT_EQ(weights("null", "samples"), (Numbers{2'000'000, 2'000'000, 2'000'000}));
  EXPECT_EQ(weights("[1,2,3]", "samples"), (Numbers{2'000'000, 4'000'000, 6'000'000}));
  EXPECT_EQ(weights("[1,2,0.5]", "tracing-ms"), (Numbers{1'000'000, 2'000'000, 500'000}));
  // AND bytes are no time
  const Result<profile::Profile> bytes =
      read_profile(draw_file(R"("stack":[1,1,0],"time":[0,1,2],"weight":[1,2,3],"weightType":"bytes")"));
  ASSERT_FALSE(bytes.ok());
  EXPECT_EQ(bytes.error().kind, ErrorKind::kUnsupported);
}

TEST(FirefoxReader, KnowsWhoseCountersTheyAre) {
  // GIVEN two processes that each have a counter WHEN they go through the format THEN each has its own
  profile::Profile original = draw_profile("main  1\n MainThread@200 | main  1");
  original.counters.push_back({ProcessId{0}, "rss", "bytes", {0, kMillisecond}, {100, 200}});
  original.counters.push_back({ProcessId{1}, "rss", "bytes", {0, kMillisecond}, {1000, 900}});
  const profile::Profile profile = read_whole(write(original));
  ASSERT_EQ(profile.counters.size(), 2U);
  EXPECT_EQ(profile.processes.at(profile.counters[0].process.index()).pid, 100);
  EXPECT_EQ(profile.processes.at(profile.counters[1].process.index()).pid, 200);
}

TEST(FirefoxReader, KnowsThatAllTimeIsNoCpuTime) {
  // GIVEN samples of CPU time, or of waits, too WHEN they go through the format THEN the mode is that of the recording
  profile::Profile original = draw_profile("main  1\n main;read  2");
  EXPECT_EQ(read_whole(write(original)).meta_value("mode"), "cpu");
  original.samples.activity[1] = Activity::kOther;
  const profile::Profile profile = read_whole(write(original));
  EXPECT_TRUE(profile.has_waits());
  EXPECT_EQ(profile.meta_value("mode"), "wall");
}

TEST(FirefoxReader, EndsWhenTheSessionDid) {
  // GIVEN a program that slept at its end WHEN its profile goes through the format THEN it lasted as long
  profile::Profile original = draw_profile("main  1");
  original.end_ns = 286 * kMillisecond;
  EXPECT_EQ(read_whole(write(original)).end_ns, 286 * kMillisecond);
}

}  // namespace
}  // namespace plimsoll::formats::firefox
