// cli/info_test.cc: `plimsoll info` from the words to the page.
#include "cli/commands.h"

#include <gtest/gtest.h>

#include "cli/exit_code.h"
#include "cli/testing.h"
#include "profile/testing.h"

namespace plimsoll::cli {
namespace {

using testing::FakeConsole;

TEST(Info, TellsTheFactsOfAProfileEvenWithoutSamples) {
  FakeConsole console;
  console.files["app.plim"] = [] { return profile::testing::draw_profile(""); };
  EXPECT_EQ(testing::run_words(make_info(), {"info", "app.plim"}, console), kFine);
  EXPECT_NE(console.out.find("samples         0\n"), std::string::npos) << console.out;
}

TEST(Info, WritesJson) {
  FakeConsole console;
  console.files["app.plim"] = [] { return profile::testing::draw_profile("main 10"); };
  EXPECT_EQ(testing::run_words(make_info(), {"info", "app.plim", "--json"}, console), kFine);
  EXPECT_TRUE(console.out.starts_with("{\"schema\":1,")) << console.out;
}

TEST(Info, NamesAFileThatIsNotThere) {
  FakeConsole console;
  EXPECT_EQ(testing::run_words(make_info(), {"info", "no.plim"}, console), kBadInput);
}

}  // namespace
}  // namespace plimsoll::cli
