// profile/filter_test.cc: which samples of drawn profiles a condition keeps.
#include "profile/filter.h"

#include <gtest/gtest.h>

#include "profile/testing.h"

namespace plimsoll::profile {
namespace {

using testing::draw_profile;
using testing::kMillisecond;

constexpr std::string_view kDrawing = R"(
  main(app.py:1);Load(data/load.py:5)          1  @10
  main(app.py:1);parse(json/decoder.py:7)      2  @20
  worker | run(pool.py:3);parse(json/decoder.py:7)  4  @15
  -                                            8  @30
)";

// The kept samples by their weights in milliseconds, which are distinct in kDrawing.
std::vector<std::int64_t> weights_kept(const Filter& conditions) {
  Profile profile = draw_profile(kDrawing);
  filter(profile, conditions);
  std::vector<std::int64_t> weights;
  for (const std::int64_t cpu : profile.samples.weight_ns) weights.push_back(cpu / kMillisecond);
  return weights;
}

using Weights = std::vector<std::int64_t>;

TEST(Filter, KeepsEverythingWithoutConditions) {
  // GIVEN no conditions WHEN the profile is filtered THEN all samples stay, the empty stack too
  EXPECT_EQ(weights_kept({}), (Weights{1, 2, 4, 8}));
}

TEST(Filter, SelectsFunctionsWhoseFilesAreNotKnown) {
  // GIVEN stacks of a format that has no files
  Profile profile = draw_profile(R"(
    main();Load()   1
    main();parse()  2
  )");
  filter(profile, {.function = "load"});
  EXPECT_EQ(profile.samples.weight_ns, (std::vector<std::int64_t>{kMillisecond}));
}

TEST(Filter, SelectsThreadsByPartOfTheirName) {
  // GIVEN a part of a thread's name in another case WHEN the profile is filtered THEN its samples stay
  EXPECT_EQ(weights_kept({.thread = "WORK"}), (Weights{4}));
}

TEST(Filter, SelectsThreadsByTheirWholeKernelId) {
  // GIVEN a kernel id WHEN the profile is filtered THEN that thread stays
  EXPECT_EQ(weights_kept({.thread = "101"}), (Weights{4}));
  // AND a part of the id matches nothing
  EXPECT_EQ(weights_kept({.thread = "10"}), (Weights{}));
}

TEST(Filter, SelectsStacksThroughAFunction) {
  // GIVEN a function's name WHEN the profile is filtered THEN stacks with it at any depth stay
  EXPECT_EQ(weights_kept({.function = "main"}), (Weights{1, 2}));
  EXPECT_EQ(weights_kept({.function = "load"}), (Weights{1}));
}

TEST(Filter, SelectsStacksThroughAFile) {
  // GIVEN a part of a path WHEN the profile is filtered THEN stacks through that file stay
  EXPECT_EQ(weights_kept({.file = "json/"}), (Weights{2, 4}));
}

TEST(Filter, SelectsWhatThreadsWereDoing) {
  Profile profile = draw_profile("main 1\nmain 2:io\nmain 4:sleep\nmain 8:io");
  filter(profile, {.activities = {Activity::kIo, Activity::kSleep}});
  EXPECT_EQ(profile.sampled_ns(), 14 * kMillisecond);
  EXPECT_EQ(profile.sampled_cpu_ns(), 0);
  filter(profile, {.activities = {Activity::kSleep}});
  EXPECT_EQ(profile.sampled_ns(), 4 * kMillisecond);
}

TEST(Waits, ArePutOnStacksForFormatsThatKnowNoOtherWay) {
  Profile profile = draw_profile("main;nap 1:sleep\nmain;nap 2\nmain;nap 4:sleep\n- 8:io");
  EXPECT_TRUE(profile.has_waits());
  profile.put_waits_on_stacks();
  const auto leaf = [&](std::size_t row) {
    return std::string(profile.strings[profile.functions[profile.leaf_function(profile.samples.stack[row])].name]);
  };
  EXPECT_EQ(leaf(0), "[sleep]");
  EXPECT_EQ(leaf(1), "nap");
  EXPECT_EQ(leaf(3), "[io]");
  EXPECT_EQ(profile.samples.stack[0], profile.samples.stack[2]);
  EXPECT_EQ(frames_of(profile.stacks, profile.samples.stack[0]).size(), 3U);
}

TEST(Filter, SelectsTags) {
  // GIVEN samples with and without tags
  const auto kept = [](std::vector<std::string_view> words) {
    Profile profile = draw_profile(R"(
      main  1  #request=GET /tea,user=7
      main  2  #request=POST /tea,user=8
      main  4  #request=GET /coffee
      main  8
      main  16 #user=
    )");
    Filter conditions;
    for (const std::string_view word : words) conditions.tags.push_back(TagCondition::parse(word));
    filter(profile, conditions);
    std::int64_t sum = 0;
    for (const std::int64_t weight : profile.samples.weight_ns) sum += weight / kMillisecond;
    return sum;
  };
  // WHEN they are filtered THEN a name alone stands for any value, and a pattern for whole values
  EXPECT_EQ(kept({"request"}), 1 + 2 + 4);
  EXPECT_EQ(kept({"request=GET*"}), 1 + 4);
  EXPECT_EQ(kept({"request=get /t?a"}), 1);
  EXPECT_EQ(kept({"request=GET"}), 0);
  EXPECT_EQ(kept({"request=*tea"}), 1 + 2);
  EXPECT_EQ(kept({"request=*e*e*"}), 1 + 4);
  // AND an empty value for samples without the tag, AND several conditions for those that meet all
  EXPECT_EQ(kept({"request="}), 8 + 16);
  EXPECT_EQ(kept({"user="}), 4 + 8 + 16);
  EXPECT_EQ(kept({"request=*tea", "user=8"}), 2);
}

TEST(Tags, BecomeMarkersForFormatsThatKnowNoOtherWay) {
  // GIVEN a thread whose tags change, and come back
  Profile profile = draw_profile(R"(
    main  1 @10 #job=a
    worker | run 1 @11 #job=z
    main  1 @12 #job=a
    main  3 @14 #job=b
    main  1 @16
    main  1 @18 #job=a
  )");
  // WHEN they are made markers THEN each stretch is one, from where its first sample's time began
  profile.put_tags_into_markers();
  std::vector<std::string> texts;
  for (const Marker& marker : profile.markers)
    texts.push_back(std::to_string(marker.thread.index()) + " " + marker.fields[0].first + "=" +
                    marker.fields[0].second + " " + std::to_string(marker.time_ns / kMillisecond) + "+" +
                    std::to_string(marker.duration_ns / kMillisecond));
  EXPECT_EQ(texts, (std::vector<std::string>{"0 job=a 9+3", "0 job=b 12+2", "0 job=a 17+1", "1 job=z 10+1"}));
}

TEST(Filter, NeedsAllConditionsAtOnce) {
  // GIVEN two conditions WHEN the profile is filtered THEN samples that meet both stay, also in different frames
  EXPECT_EQ(weights_kept({.function = "main", .file = "decoder"}), (Weights{2}));
  EXPECT_EQ(weights_kept({.thread = "worker", .function = "main"}), (Weights{}));
}

TEST(Filter, TakesTheStartOfATimeRangeAndNotItsEnd) {
  // GIVEN a time range WHEN the profile is filtered THEN from is inside and to is outside
  EXPECT_EQ(weights_kept({.from_ns = 15 * kMillisecond, .to_ns = 30 * kMillisecond}), (Weights{2, 4}));
}

TEST(Filter, KeepsOfEachThreadTheTimesInWhichItWasAskedFor) {
  // GIVEN spans, the main thread (100) in the first, the worker (101) in the second
  Profile profile = draw_profile(kDrawing);
  keep_spans(profile, {{0, 20 * kMillisecond, {100}}, {15 * kMillisecond, 40 * kMillisecond, {101}}});
  // THEN of each thread the samples of its span are kept
  EXPECT_EQ(profile.samples.weight_ns, (std::vector<std::int64_t>{1 * kMillisecond, 4 * kMillisecond}));
  // AND of a wait that began before its span the part that lies in it
  Profile waiting = draw_profile("main  5:sleep  @20");
  keep_spans(waiting, {{0, 16 * kMillisecond, {100}}, {18 * kMillisecond, 40 * kMillisecond, {100}}});
  EXPECT_EQ(waiting.samples.weight_ns, (std::vector<std::int64_t>{3 * kMillisecond}));
}

TEST(Filter, KeepsOfLongSamplesWhatIsWithinTheTimeRange) {
  // GIVEN a file of another tool with spans of 10 s and 1 s
  const auto kept = [](std::int64_t from_s, std::int64_t to_s) {
    Profile profile = draw_profile("main 10000 @10000\n tail 1000 @11000");
    profile.set_meta("format", "chrome trace");
    filter(profile, {.from_ns = from_s * 1000 * kMillisecond, .to_ns = to_s * 1000 * kMillisecond});
    Weights seconds;
    for (const std::int64_t weight : profile.samples.weight_ns) seconds.push_back(weight / kMillisecond / 1000);
    return seconds;
  };
  EXPECT_EQ(kept(2, 5), (Weights{3}));
  EXPECT_EQ(kept(9, 11), (Weights{1, 1}));
  EXPECT_EQ(kept(0, 20), (Weights{10, 1}));
  EXPECT_EQ(kept(10, 11), (Weights{1}));
  // AND waits are such spans in every recording, and CPU time is not
  Profile profile = draw_profile("main 10000:sleep @10000\n main 5 @10005");
  filter(profile, {.from_ns = 9'000 * kMillisecond, .to_ns = 10'004 * kMillisecond});
  EXPECT_EQ(profile.samples.weight_ns, (std::vector<std::int64_t>{1'000 * kMillisecond}));
}

TEST(Filter, LeavesTheFactsOfTheSessionAlone) {
  // GIVEN a profile with 15 ms of process time
  Profile profile = draw_profile(kDrawing);
  // WHEN one thread is selected
  filter(profile, {.thread = "worker"});
  // THEN the total of the session is what it was, and the tables are whole
  EXPECT_EQ(profile.process_cpu_ns, 15 * kMillisecond);
  EXPECT_EQ(profile.threads.size(), 2U);
  EXPECT_FALSE(testing::function_named(profile, "Load").is_none());
}

}  // namespace
}  // namespace plimsoll::profile
