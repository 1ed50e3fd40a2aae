#include "debuginfo/line_resolver.h"

#include <gtest/gtest.h>

#include <link.h>

#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "debuginfo/inlined_testing.h"

namespace plimsoll::debuginfo {
namespace {

std::vector<Place> find(std::uint64_t address, const Limits& limits = {}) {
  const Result<std::unique_ptr<LineResolver>> opened = LineResolver::open(this_program(), "", limits);
  EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().message);
  return opened.ok() ? opened.value()->find(address) : std::vector<Place>{};
}

TEST(LineResolver, TellsInlinedFunctionsAndWhereTheyWereCalled) {
  // GIVEN an instruction of a function that was inlined into one that was inlined into a third
  const std::vector<Place> places = find(address_of_marked_instruction());
  // THEN all three are there, the one that has machine code of its own first, with the lines of their calls
  ASSERT_EQ(places.size(), 3U);
  EXPECT_EQ(places[0].function, "plimsoll::debuginfo::outermost(int)");
  EXPECT_EQ(places[1].function, "plimsoll::debuginfo::middle");
  EXPECT_EQ(places[2].function, "plimsoll::debuginfo::innermost");
  EXPECT_FALSE(places[0].is_inlined);
  EXPECT_TRUE(places[1].is_inlined && places[2].is_inlined);
  for (const Place& place : places) {
    EXPECT_TRUE(place.file.ends_with("/debuginfo/inlined_testing.cc")) << place.file;
    EXPECT_EQ(place.file.front(), '/');
  }
  EXPECT_EQ(places[0].line, kLineInOutermost);
  EXPECT_EQ(places[1].line, kLineInMiddle);
  EXPECT_EQ(places[2].line, kLineInInnermost);
}

TEST(LineResolver, CallsWhatIsInAClassWithoutANameAfterNoNamespace) {
  // GIVEN an instruction of a lambda
  const std::vector<Place> places = find(address_in_lambda());
  // THEN it is in its function, and in no namespace that it is not in
  ASSERT_EQ(places.size(), 2U);
  EXPECT_EQ(places[0].function, "plimsoll::debuginfo::with_lambda(int)");
  EXPECT_TRUE(places[1].function.ends_with("(anonymous class)::operator()")) << places[1].function;
}

TEST(LineResolver, KnowsNothingOfAddressesWithoutCode) {
  EXPECT_TRUE(find(1).empty());
  EXPECT_TRUE(find(UINT64_MAX).empty());
}

TEST(LineResolver, StopsAtItsDeadline) {
  Limits limits;
  limits.deadline_ns = monotonic_ns() - 1;
  EXPECT_TRUE(find(address_of_marked_instruction(), limits).empty());
}

TEST(LineResolver, RefusesFilesThatAreNotWhatWasRecorded) {
  const auto error = [](const std::string& path, const std::string& build_id, const Limits& limits = {}) {
    const Result<std::unique_ptr<LineResolver>> opened = LineResolver::open(path, build_id, limits);
    return opened.ok() ? "" : opened.error().message;
  };
  EXPECT_NE(error(this_program(), "another").find("is not the file any more"), std::string::npos);
  EXPECT_NE(error("/nowhere/lib.so", "").find("is not there any more"), std::string::npos);
  EXPECT_NE(error("/", "").find("is not there any more"), std::string::npos);
  Limits small;
  small.largest_file = 1000;
  EXPECT_NE(error(this_program(), "", small).find("is too large"), std::string::npos);
}

TEST(LineResolver, SurvivesDamagedFiles) {
  // GIVEN this program, with bytes of its debug information overwritten
  std::ifstream in(this_program(), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) / "damaged_debug_information";
  std::uint64_t random = 1;
  for (int round = 0; round < 20; ++round) {
    std::string damaged = bytes;
    for (int i = 0; i < 2000; ++i) {
      random = random * 6364136223846793005U + 1442695040888963407U;
      damaged[4096 + (random >> 20U) % (damaged.size() - 4096)] = static_cast<char>(random >> 56U);
    }
    std::ofstream(path, std::ios::binary).write(damaged.data(), static_cast<std::streamsize>(damaged.size()));
    // THEN it is an error or an answer
    const Result<std::unique_ptr<LineResolver>> opened = LineResolver::open(path, "", {});
    if (opened.ok()) {
      EXPECT_LT(opened.value()->find(address_of_marked_instruction()).size(), 1000U);
    }
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace plimsoll::debuginfo
