// profile/flat_test.cc: times per function and per line of drawn profiles.
#include "profile/flat.h"

#include <gtest/gtest.h>

#include "profile/testing.h"

namespace plimsoll::profile {
namespace {

using testing::draw_profile;
using testing::kMillisecond;

// Rows as text: name[:line], self/total milliseconds, self/total samples.
std::string drawn_rows(const Profile& profile, const std::vector<FlatRow>& rows) {
  std::string out = "\n";
  for (const FlatRow& row : rows) {
    out += profile.strings[profile.functions[row.function].name];
    if (row.line != 0) out += ":" + std::to_string(row.line);
    out += " " + std::to_string(row.self_ns / kMillisecond) + "/" + std::to_string(row.total_ns / kMillisecond);
    out += " " + std::to_string(row.self_samples) + "/" + std::to_string(row.total_samples) + "\n";
  }
  return out;
}

TEST(Flat, IsEmptyForAnEmptyProfile) {
  // GIVEN no samples WHEN they are aggregated THEN there are no rows
  const Profile profile = draw_profile("");
  EXPECT_TRUE(flat(profile).empty());
  EXPECT_TRUE(lines(profile).empty());
}

TEST(Flat, GivesAFunctionItsTimeFromAllCallers) {
  // GIVEN a function with two callers
  const Profile profile = draw_profile(R"(
    main;a;work   3
    main;b;work   4
    main;a        1
  )");
  // WHEN the samples are aggregated THEN its row has the time of both, and the heaviest self time comes first
  EXPECT_EQ(drawn_rows(profile, flat(profile)), R"(
work 7/7 2/2
a 1/4 1/2
main 0/8 0/3
b 0/4 0/1
)");
}

TEST(Flat, CountsRecursionOnce) {
  // GIVEN a function that is on the stack three times WHEN it is aggregated THEN its total is not tripled
  const Profile profile = draw_profile(R"(
    fib;fib;fib         5
    fib;other;fib;leaf  2
  )");
  EXPECT_EQ(drawn_rows(profile, flat(profile)), R"(
fib 5/7 1/2
leaf 2/2 1/1
other 0/2 0/1
)");
}

TEST(Flat, LeavesOutFunctionsWithoutSamples) {
  // GIVEN a function whose only sample was filtered away
  Profile profile = draw_profile(R"(
    gone   1
    kept   2
  )");
  SampleTable kept;
  kept.push_back(0, ThreadId{0}, profile.samples.stack[1], 2 * kMillisecond);
  profile.samples = kept;
  // WHEN the rest is aggregated THEN the function has no row
  EXPECT_EQ(drawn_rows(profile, flat(profile)), "\nkept 2/2 1/1\n");
}

TEST(Flat, IgnoresTheEmptyStack) {
  // GIVEN a sample without frames WHEN it is aggregated THEN it belongs to no function
  EXPECT_TRUE(flat(draw_profile("-  5")).empty());
}

TEST(Lines, GivesEachLineItsOwnTime) {
  // GIVEN a function seen at two lines, one of them as a caller
  const Profile profile = draw_profile(R"(
    work(app.py:3)                   5
    work(app.py:4);inner(app.py:9)   2
    work(app.py:3)                   1
  )");
  // WHEN the samples are aggregated by line THEN the lines are rows of their own
  EXPECT_EQ(drawn_rows(profile, lines(profile)), R"(
work:3 6/6 2/2
inner:9 2/2 1/1
work:4 0/2 0/1
)");
}

TEST(Lines, JoinsTheColumnsOfALine) {
  // GIVEN two frames on one line at different columns
  Profile profile = draw_profile("work(app.py:3)  5");
  const FunctionId work = testing::function_named(profile, "work");
  const FrameId other_column = profile.frames.intern({work, 3, 17});
  profile.samples.push_back(6 * kMillisecond, ThreadId{0}, profile.stacks.intern({StackId{}, other_column}),
                            kMillisecond);
  // WHEN the samples are aggregated by line THEN they are one row
  EXPECT_EQ(drawn_rows(profile, lines(profile)), "\nwork:3 6/6 2/2\n");
}

TEST(Lines, CountsARecursiveLineOnce) {
  // GIVEN a line that calls itself WHEN it is aggregated THEN its total is not doubled
  const Profile profile = draw_profile("fib(app.py:2);fib(app.py:2);fib(app.py:1)  4");
  EXPECT_EQ(drawn_rows(profile, lines(profile)), R"(
fib:1 4/4 1/1
fib:2 0/4 0/1
)");
}

}  // namespace
}  // namespace plimsoll::profile
