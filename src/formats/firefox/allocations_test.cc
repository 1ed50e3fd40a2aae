// formats/firefox/allocations_test.cc: what was allocated, of which type, and what is retained.
#include "formats/firefox/allocations.h"

#include "formats/firefox/writer.h"
#include "formats/testing.h"
#include "profile/testing.h"

namespace plimsoll::formats::firefox {
namespace {

using testing::json_at;

profile::AllocationRow block(std::int64_t time_ns, std::uint64_t size) {
  profile::AllocationRow row;
  row.time_ns = time_ns;
  row.thread = ThreadId{0};
  row.size = row.chance_bytes = size;
  return row;
}

TEST(FirefoxAllocations, HaveAddressesByWhichThePageKnowsWhatIsRetained) {
  // GIVEN an object that was freed and memory that was not, both so large that each was sampled for certain
  profile::Profile profile = profile::testing::draw_profile("main;work  1");
  profile.allocation_distance = 1;
  profile::AllocationRow object = block(2'000'000, 1000);
  object.stack = profile.samples.stack[0];
  object.freed_ns = 4'000'000;
  object.type = profile.strings.intern("Tea");
  profile.allocations = {object, block(3'000'000, 500)};
  // WHEN the profile is written
  const boost::json::value file = testing::parse_json(write(profile));
  // THEN blocks come and go by their addresses, in order of time
  EXPECT_EQ(json_at(file, "/threads/0/nativeAllocations"),
            R"({"time":[2,3,4],"weight":[1000,500,-1000],"weightType":"bytes","stack":[1,null,null],)"
            R"("memoryAddress":[1,2,1],"threadId":[100,100,100],"length":3})");
  // AND types have a table of their own
  EXPECT_EQ(
      json_at(file, "/threads/0/jsAllocations"),
      R"({"time":[2,3],"className":["Tea","memory"],"typeName":["Tea","memory"],"coarseType":["Object","Object"],)"
      R"("weight":[1000,500],"weightType":"bytes","inNursery":[false,false],"stack":[1,null],"length":2})");
}

TEST(FirefoxAllocations, WeighWhatTheyStandFor) {
  // GIVEN a block of a hundredth of the distance: 1 / (1 - e^-0.01) = 100.5 like it
  profile::Profile profile = profile::testing::draw_profile("main  1");
  profile.allocation_distance = 10'000;
  profile.allocations = {block(0, 100)};
  const boost::json::value file = testing::parse_json(write(profile));
  EXPECT_EQ(json_at(file, "/threads/0/nativeAllocations/weight"), "[10050]");
}

TEST(FirefoxAllocations, AreNoTablesWhereNoneWereSampled) {
  const boost::json::value file = testing::parse_json(write(profile::testing::draw_profile("main  1")));
  EXPECT_EQ(file.at_pointer("/threads/0").as_object().if_contains("nativeAllocations"), nullptr);
}

}  // namespace
}  // namespace plimsoll::formats::firefox
