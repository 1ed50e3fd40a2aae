// formats/flamegraph/writer_test.cc: drawn profiles as pages. What the page does with them is tested by tests/python.
#include "formats/flamegraph/writer.h"

#include "formats/testing.h"
#include "profile/testing.h"

namespace plimsoll::formats::flamegraph {
namespace {

using profile::AllocationRow;
using profile::testing::draw_profile;
using profile::testing::draw_stack;
using testing::int_at;
using testing::json_at;
using testing::parse_json;
using testing::size_at;
using testing::text_at;

TEST(Flamegraph, HasTheCallTreeAColumnEach) {
  // GIVEN two callees of one function, the lighter one first
  const auto page = parse_json(profile_json(draw_profile(R"(
    main(app.py:1 def 1);light(app.py:7 def 5)  1
    main(app.py:2 def 1);heavy(app.py:9 def 8)  3
    main(app.py:2 def 1)                        2
    main(app.py:3 def 1);heavy(app.py:9 def 8)  1
  )")));
  // THEN callers stand before callees, the heavier ones first, and lines are forgotten
  EXPECT_EQ(json_at(page, "/functions"),
            R"([["main","app.py",1,"python"],["heavy","app.py",8,"python"],["light","app.py",5,"python"]])");
  EXPECT_EQ(text_at(page, "/views/0/name"), "CPU time");
  EXPECT_EQ(json_at(page, "/views/0/depth"), "[0,1,2,2]");
  EXPECT_EQ(json_at(page, "/views/0/function"), "[-1,0,1,2]");
  EXPECT_EQ(json_at(page, "/views/0/total"), "[7000000,7000000,4000000,1000000]");
  EXPECT_EQ(json_at(page, "/views/0/self"), "[0,2000000,4000000,1000000]");
  EXPECT_EQ(json_at(page, "/views/0/count"), "[4,4,2,1]");
  // AND the table has them by what they did themselves
  EXPECT_EQ(json_at(page, "/views/0/flat"), "[[1,4000000,4000000],[0,2000000,7000000],[2,1000000,1000000]]");
}

TEST(Flamegraph, WhatIsTooSmallIsShownAsOne) {
  // GIVEN more functions than may be shown
  const auto page = parse_json(profile_json(draw_profile("main;a  5\n main;b  3\n main;c  2\n main;d  1"), 3));
  // THEN the heaviest are, and nothing is missing from a sum
  EXPECT_EQ(json_at(page, "/views/0/function"), "[-1,0,1,-2]");
  EXPECT_EQ(json_at(page, "/views/0/depth"), "[0,1,2,2]");
  EXPECT_EQ(json_at(page, "/views/0/total"), "[11000000,11000000,5000000,6000000]");
  EXPECT_EQ(json_at(page, "/views/0/count"), "[4,4,1,3]");
}

TEST(Flamegraph, ADeepStackIsAsDeepInThePage) {
  std::string stack = "f";
  for (int i = 1; i < 3000; ++i) stack += ";f";
  const auto page = parse_json(profile_json(draw_profile(stack + "  1")));
  EXPECT_EQ(size_at(page, "/views/0/depth"), 3001U);
  EXPECT_EQ(int_at(page, "/views/0/depth/3000"), 3000);
}

TEST(Flamegraph, ShowsMemoryBesideTime) {
  // GIVEN a profile with a block that lives, and one that was freed
  profile::Profile profile = draw_profile("main  1");
  profile.allocation_distance = 1;
  for (const std::int64_t freed : {AllocationRow::kAlive, std::int64_t{20}}) {
    AllocationRow row;
    row.number = profile.allocations.size();
    row.thread = ThreadId{0};
    row.stack = draw_stack(profile, "main;make");
    row.time_ns = 10;
    row.size = row.chance_bytes = 5'000;
    row.freed_ns = freed;
    profile.allocations.push_back(row);
  }
  const auto page = parse_json(profile_json(profile));
  // THEN each is a view, in bytes, which says how sure it is
  ASSERT_EQ(size_at(page, "/views"), 4U);
  EXPECT_EQ(text_at(page, "/views/1/name"), "Allocated");
  EXPECT_EQ(text_at(page, "/views/1/unit"), "bytes");
  EXPECT_EQ(int_at(page, "/views/1/total/0"), 10'000);
  EXPECT_EQ(int_at(page, "/views/2/total/0"), 5'000);
  EXPECT_EQ(int_at(page, "/views/3/total/0"), 10'000);
  EXPECT_TRUE(text_at(page, "/views/1/about").starts_with("estimated from 2 samples"));
}

TEST(Flamegraph, SaysWhatAnExactRecordingLacks) {
  // GIVEN an exact recording
  profile::Profile profile = draw_profile("main  1");
  profile.is_exact = true;
  AllocationRow row;
  row.thread = ThreadId{0};
  row.stack = draw_stack(profile, "main;make");
  row.size = 1000;
  profile.allocations.push_back(row);
  const auto about = [&] { return text_at(parse_json(profile_json(profile)), "/views/1/about"); };
  EXPECT_EQ(about(), "every allocation");
  // WHEN some are lost, or it has not come to its end, THEN the page does not say that all are there
  profile.drops.push_back({"allocation not recorded", 5, 0});
  EXPECT_EQ(about(), "every allocation, but for 5 that were lost");
  profile.complete = false;
  EXPECT_EQ(about(), "every allocation, but for the last moments: the recording was cut short, or goes on");
}

TEST(Flamegraph, NoNameEndsTheScriptThatItStandsIn) {
  // GIVEN a function that is called what would be code in the page
  const std::string page = write(draw_profile("</script><script>alert(1)</script>  1"));
  // THEN it is a text of the profile's JSON
  EXPECT_EQ(page.find("alert(1)</script>"), std::string::npos);
  EXPECT_NE(page.find(R"(\u003c/script>\u003cscript>alert(1))"), std::string::npos);
  // AND the page loads nothing from anywhere
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  for (const char* const place : {"src=", "href=", "url(", "http:", "https:"})
    EXPECT_EQ(page.find(place), std::string::npos) << place;
}

}  // namespace
}  // namespace plimsoll::formats::flamegraph
