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

}  // namespace
}  // namespace plimsoll::cli
