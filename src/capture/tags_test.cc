#include "capture/tags.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace plimsoll::capture {
namespace {

std::shared_ptr<const Tags> request(const char* value) {
  return std::make_shared<const Tags>(Tags{{"request", value}});
}

TEST(TagRegistry, ForgetsTheDeadAtOnceWhenNothingIsRecorded) {
  TagRegistry registry;
  const TagNumber number = registry.add(request("GET /"));
  EXPECT_TRUE(registry.is_used());
  EXPECT_EQ(registry.find(number)->at(0).second, "GET /");
  registry.died(number);
  EXPECT_FALSE(registry.is_used());
  EXPECT_EQ(registry.find(number), nullptr);
}

TEST(TagRegistry, KeepsTheDeadUntilTheirSamplesAreResolved) {
  TagRegistry registry;
  registry.begin_recording();
  const TagNumber number = registry.add(request("GET /"));
  const std::int64_t before = monotonic_ns();
  registry.died(number);
  // WHEN what was sampled before it died has been resolved THEN a sample of it may still be to come
  registry.forget_deaths_before(before);
  EXPECT_NE(registry.find(number), nullptr);
  registry.forget_deaths_before(INT64_MAX);
  EXPECT_EQ(registry.find(number), nullptr);
}

TEST(TagRegistry, NeverGivesANumberTwice) {
  TagRegistry registry;
  const TagNumber first = registry.add(request("first"));
  registry.died(first);
  const TagNumber second = registry.add(request("second"));
  EXPECT_NE(first, second);
  EXPECT_EQ(registry.find(first), nullptr);
  EXPECT_EQ(registry.find(second)->at(0).second, "second");
  EXPECT_EQ(registry.find(0), nullptr);
  EXPECT_EQ(registry.find(~TagNumber{0}), nullptr);
}

TEST(TagRegistry, ForgetsAllDeadWithTheRecording) {
  TagRegistry registry;
  registry.begin_recording();
  const TagNumber number = registry.add(request("GET /"));
  registry.died(number);
  registry.end_recording();
  EXPECT_EQ(registry.find(number), nullptr);
}

}  // namespace
}  // namespace plimsoll::capture
