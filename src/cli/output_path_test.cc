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

}  // namespace
}  // namespace plimsoll::cli
