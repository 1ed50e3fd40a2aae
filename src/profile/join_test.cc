// profile/join_test.cc: drawn profiles of several processes, put together.
#include "profile/join.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "profile/testing.h"

namespace plimsoll::profile {
namespace {

using testing::draw_profile;
using testing::kMillisecond;

// Each sample as "time process/thread: stack", in the order of the table.
std::vector<std::string> samples_of(const Profile& profile) {
  std::vector<std::string> lines;
  for (std::size_t row = 0; row < profile.samples.size(); ++row) {
    const Thread& thread = profile.threads[profile.samples.thread[row].index()];
    std::string line = std::to_string(profile.samples.time_ns[row] / kMillisecond) + " " +
                       std::to_string(profile.processes[thread.process.index()].pid) + "/" + thread.name + ":";
    for (const FrameId frame : frames_of(profile.stacks, profile.samples.stack[row]))
      line += " " + std::string(profile.strings[profile.functions[profile.frames[frame].function].name]);
    lines.push_back(line);
  }
  return lines;
}

TEST(Join, PutsTheSamplesOfTwoProcessesOnOneAxisOfTime) {
  // GIVEN a process, and a child that began 5 ms later
  Profile all = draw_profile(R"(
    main;start                        1  @1
    main;wait                         2  @7
    main;wait                         3  @9
  )");
  Profile child = draw_profile(R"(
    worker@200 | main;work            4  @1   #job=a
    worker@200 | main;work;sum        5  @3
  )");
  child.start_monotonic_ns = all.start_monotonic_ns + 5 * kMillisecond;
  child.end_ns = 20 * kMillisecond;
  all.process_cpu_ns = 6 * kMillisecond;
  child.process_cpu_ns = 9 * kMillisecond;
  // WHEN they are joined
  ASSERT_TRUE(join(all, std::move(child)).ok());
  // THEN all samples are there, by their times, with their threads, stacks and tags
  EXPECT_EQ(samples_of(all), (std::vector<std::string>{"1 100/MainThread: main start", "6 200/worker: main work",
                                                       "7 100/MainThread: main wait", "8 200/worker: main work sum",
                                                       "9 100/MainThread: main wait"}));
  EXPECT_EQ(all.sampled_ns(), 15 * kMillisecond);
  EXPECT_EQ(all.process_cpu_ns, 15 * kMillisecond);
  EXPECT_EQ(all.end_ns, 25 * kMillisecond);
  ASSERT_FALSE(all.samples.tags[1].is_none());
  EXPECT_EQ(all.strings[all.tag_sets[all.samples.tags[1]][0].value], "a");
  EXPECT_TRUE(all.samples.tags[0].is_none());
}

TEST(Join, OrdersSamplesOfFilesThatTellOfOneThreadAfterTheOther) {
  // GIVEN a file with all of one thread before all of another WHEN it is joined THEN all samples are by their times
  Profile all = draw_profile("main  1 @1\n main  1 @9\n worker | run  1 @2\n worker | run  1 @8");
  Profile more = draw_profile("other@200 | work  1 @7\n last@200 | work  1 @3");
  ASSERT_TRUE(join(all, std::move(more)).ok());
  EXPECT_TRUE(std::is_sorted(all.samples.time_ns.begin(), all.samples.time_ns.end()));
  EXPECT_EQ(all.samples.size(), 6U);
}

TEST(Join, BeginsWhenTheFirstOfThemDid) {
  Profile all = draw_profile("main 1 @1");
  all.start_monotonic_ns = 100 * kMillisecond;
  all.start_realtime_ns = 1'000 * kMillisecond;
  Profile earlier = draw_profile("other@200 | main 1 @1");
  earlier.start_monotonic_ns = 90 * kMillisecond;
  ASSERT_TRUE(join(all, std::move(earlier)).ok());
  EXPECT_EQ(samples_of(all), (std::vector<std::string>{"1 200/other: main", "11 100/MainThread: main"}));
  EXPECT_EQ(all.start_realtime_ns, 990 * kMillisecond);
}

TEST(Join, AddsUpLossesAndKeepsEachSourceAndModuleOnce) {
  Profile all = draw_profile("main 1");
  all.drops = {{"ring full", 2, 20}};
  all.sources = {{"app.py", "print()"}};
  all.modules = {{"libc.so.6", "abc"}};
  Profile more = draw_profile("main@200 | main 1");
  more.drops = {{"ring full", 3, 30}, {"deep stack", 1, 1}};
  more.sources = {{"app.py", "print()"}, {"more.py", "pass"}};
  more.modules = {{"libc.so.6", "abc"}, {"libc.so.6", "def"}};
  more.complete = false;
  ASSERT_TRUE(join(all, std::move(more)).ok());
  ASSERT_EQ(all.drops.size(), 2U);
  EXPECT_EQ(all.drops[0].count, 5U);
  EXPECT_EQ(all.drops[0].cpu_ns, 50);
  EXPECT_EQ(all.sources.size(), 2U);
  EXPECT_EQ(all.modules.size(), 2U);
  EXPECT_FALSE(all.complete) << "one of them was cut short";
}

TEST(Join, RefusesARecordingThatIsInThereAlready) {
  // GIVEN the profile of a process and its child
  const char* const drawing = "run@200 | work 2";
  Profile all = draw_profile("main 1");
  Profile child = draw_profile(drawing);
  child.start_monotonic_ns += 5;
  ASSERT_TRUE(join(all, std::move(child)).ok());
  // WHEN the child's is put into it once more, or its own
  Profile again = draw_profile(drawing);
  again.start_monotonic_ns += 5;
  const Status refused = join(all, std::move(again));
  // THEN that is refused, and no time counts twice
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("in there already"), std::string::npos);
  EXPECT_FALSE(join(all, draw_profile("main 1")).ok());
  EXPECT_EQ(all.sampled_ns(), 3 * kMillisecond);
  EXPECT_EQ(all.threads.size(), 2U);
  // AND another recording of the same process is taken
  Profile later = draw_profile(drawing);
  later.start_monotonic_ns += 6;
  EXPECT_TRUE(join(all, std::move(later)).ok());
}

TEST(Join, TakesFilesThatDoNotSayOfWhomTheyAre) {
  Profile all = draw_profile("main 1"), more = draw_profile("main 1");
  all.start_monotonic_ns = more.start_monotonic_ns = 0;
  EXPECT_TRUE(join(all, std::move(more)).ok());
}

// A profile with one sampled block of an object.
Profile with_block(std::string_view type, std::int64_t time_ns, std::int64_t freed_ns) {
  Profile profile = draw_profile("main;" + std::string(type) + " 1");
  profile.allocation_distance = 1024;
  AllocationRow row;
  row.number = 7;
  row.time_ns = time_ns;
  row.freed_ns = freed_ns;
  row.thread = ThreadId{0};
  row.stack = profile.samples.stack[0];
  row.type = profile.strings.intern(type);
  profile.allocations.push_back(row);
  return profile;
}

TEST(Join, PutsAllocationsInTheOrderOfTheirTimes) {
  Profile all = with_block("list", 30, AllocationRow::kAlive);
  Profile more = with_block("dict", 10, 15);
  more.start_monotonic_ns = all.start_monotonic_ns + 5;
  ASSERT_TRUE(join(all, std::move(more)).ok());
  ASSERT_EQ(all.allocations.size(), 2U);
  EXPECT_EQ(all.strings[all.allocations[0].type], "dict");
  EXPECT_EQ(all.allocations[0].time_ns, 15);
  EXPECT_EQ(all.allocations[0].freed_ns, 20);
  EXPECT_EQ(all.allocations[0].thread, ThreadId{1});
  EXPECT_EQ(all.strings[all.functions[all.leaf_function(all.allocations[0].stack)].name], "dict");
  EXPECT_EQ(all.allocations[1].freed_ns, AllocationRow::kAlive);
  EXPECT_NE(all.allocations[0].number, all.allocations[1].number);
}

TEST(Join, RefusesAllocationsOfAnotherDistance) {
  Profile all = with_block("list", 30, AllocationRow::kAlive);
  Profile more = with_block("dict", 10, 15);
  more.allocation_distance = 2048;
  EXPECT_FALSE(join(all, std::move(more)).ok());
  EXPECT_EQ(all.allocations.size(), 1U);
  EXPECT_EQ(all.threads.size(), 1U);
}

}  // namespace
}  // namespace plimsoll::profile
