// formats/cpuprofile/reader_test.cc: times of samples.
#include "formats/cpuprofile/reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/input.h"
#include "profile/testing.h"

namespace plimsoll::formats::cpuprofile {
namespace {

TEST(CpuProfile, GivesNoTimeToASampleThatCameTooLate) {
  // GIVEN samples of which V8 noted one after the next one, by a delta that is negative
  const Result<profile::Profile> read = read_profile(R"json({"nodes":[
      {"id":1,"callFrame":{"functionName":"(root)"},"children":[2,3]},
      {"id":2,"callFrame":{"functionName":"a"}},{"id":3,"callFrame":{"functionName":"b"}}],
      "startTime":100,"endTime":200,"samples":[2,3,2,3],"timeDeltas":[0,50,-20,40]})json");
  // WHEN they are read THEN their weights are what passed, and none is negative
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(profile::testing::stacks_of(read.value()), (std::vector<std::string>{"a", "b", "a", "b"}));
  EXPECT_EQ(read.value().samples.weight_ns, (std::vector<std::int64_t>{50'000, 0, 20'000, 30'000}));
}

}  // namespace
}  // namespace plimsoll::formats::cpuprofile
