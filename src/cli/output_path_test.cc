// cli/output_path_test.cc: what is not to be written over.
#include "cli/output_path.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

// An empty directory of the test's own.
class OutputPath : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "output_path.XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { fs::remove_all(directory_); }

  [[nodiscard]] std::string path(std::string_view name) const { return (directory_ / name).string(); }
  fs::path directory_;
};

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
