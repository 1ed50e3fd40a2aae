// cli/output_path_test.cc: what is not to be written over.
#include "cli/output_path.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/directory_testing.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

using OutputPath = testing::DirectoryTest;

TEST_F(OutputPath, KnowsTheInputByAnyName) {
  std::ofstream(path("in.plim")) << "profile";
  fs::create_symlink(path("in.plim"), path("link"));
  EXPECT_FALSE(check_not_input(path("link"), path("in.plim")).ok());
  EXPECT_FALSE(check_not_input(directory_.string() + "/./in.plim", path("in.plim")).ok());
  EXPECT_TRUE(check_not_input(path("out"), path("in.plim")).ok());
  EXPECT_TRUE(check_not_input(path("in.plim"), "-").ok());
}

TEST_F(OutputPath, IsNotMadeWholeWhereTheDirectoryWasRemoved) {
  const fs::path before = fs::current_path();
  fs::create_directory(path("gone"));
  fs::current_path(path("gone"));
  fs::remove(path("gone"));
  const Result<std::string> relative = absolute_path("out.plim");
  const Result<std::string> absolute = absolute_path("/tmp/out.plim");
  fs::current_path(before);
  ASSERT_FALSE(relative.ok());
  EXPECT_NE(relative.error().message.find("out.plim"), std::string::npos) << relative.error().message;
  EXPECT_EQ(absolute.value(), "/tmp/out.plim");
}

TEST(ShellWord, IsAWordOfACommandThatIsToBeTyped) {
  EXPECT_EQ(shell_word("app-2026.plim"), "app-2026.plim");
  EXPECT_EQ(shell_word("/tmp/größe.plim"), "/tmp/größe.plim");
  // WHEN the shell would take it apart, or for something else
  EXPECT_EQ(shell_word("my app.plim"), "'my app.plim'");
  EXPECT_EQ(shell_word("a'b;c.plim"), "'a'\\''b;c.plim'");
  EXPECT_EQ(shell_word("~x$y.plim"), "'~x$y.plim'");
  EXPECT_EQ(shell_word(""), "''");
  // OR the command would THEN it is quoted, or led by its directory
  EXPECT_EQ(shell_word("-x.plim"), "./-x.plim");
  EXPECT_EQ(shell_word("-"), "./-");
}

TEST(RecordingPath, IsNotStandardOutput) {
  EXPECT_FALSE(check_recording_path("-").ok());
  EXPECT_TRUE(check_recording_path("./-").ok());
  EXPECT_TRUE(check_recording_path("").ok());
}

}  // namespace
}  // namespace plimsoll::cli
