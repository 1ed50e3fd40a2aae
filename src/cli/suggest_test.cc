// cli/suggest_test.cc: slips of the fingers.
#include "cli/suggest.h"

#include <gtest/gtest.h>

namespace plimsoll::cli {
namespace {

const std::vector<std::string_view> kCommands = {"show", "info", "convert", "run"};

TEST(Nearest, FindsTheWordBehindASlip) {
  EXPECT_EQ(nearest("shwo", kCommands), "show");
  EXPECT_EQ(nearest("ifno", kCommands), "info");
  EXPECT_EQ(nearest("covnert", kCommands), "convert");
  EXPECT_EQ(nearest("conv", kCommands), "convert");
  EXPECT_EQ(nearest("runn", kCommands), "run");
}

TEST(Nearest, DoesNotGuessWildly) {
  EXPECT_EQ(nearest("flamegraph", kCommands), "");
  EXPECT_EQ(nearest("", kCommands), "");
}

TEST(NoSuch, NamesTheWordTheGuessAndTheChoices) {
  EXPECT_EQ(no_such("view", "tre", {"tree", "flat"}),
            "there is no view \"tre\" (did you mean \"tree\"?); there are tree, flat");
  EXPECT_EQ(no_such("view", "heatmap", {"tree", "flat"}), "there is no view \"heatmap\"; there are tree, flat");
}

TEST(Nearest, OfSeveralThatBeginLikeTheWordTheShortestIsMeant) {
  EXPECT_EQ(nearest("--nativ", {"--native-memory", "--native", "--no-native"}), "--native");
  EXPECT_EQ(nearest("--na", {"--native", "--native-memory"}), "--native");
}

}  // namespace
}  // namespace plimsoll::cli
