#include "profile/without_native.h"

#include <gtest/gtest.h>

#include "profile/testing.h"

namespace plimsoll::profile {
namespace {

// The stacks of a drawn profile, one a line, without native frames.
std::vector<std::string> without_native(std::string_view drawing) {
  Profile profile = testing::draw_profile(drawing);
  leave_out_native(profile);
  return testing::stacks_of(profile);
}

TEST(WithoutNative, TimeIsTheCallers) {
  EXPECT_EQ(without_native("!_start;main;!PyEval;work;!memcpy  1\n"
                           "!_start;main;!PyEval;work;inner  1\n"
                           "!_start  1\n"
                           "-  1"),
            (std::vector<std::string>{"main;work", "main;work;inner", "", ""}));
}

TEST(WithoutNative, LeavesOtherStacksAsTheyAre) {
  const std::string_view drawing = "main;work  1\nmain;[gc]  1";
  Profile profile = testing::draw_profile(drawing);
  const std::size_t stacks = profile.stacks.size();
  leave_out_native(profile);
  EXPECT_EQ(profile.stacks.size(), stacks);
  EXPECT_EQ(without_native(drawing), (std::vector<std::string>{"main;work", "main;[gc]"}));
}

}  // namespace
}  // namespace plimsoll::profile
