// os/available_memory_test.cc: limits of control groups, drawn as files.
#include "os/available_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace plimsoll::os {
namespace {

class Groups : public ::testing::Test {
 protected:
  Groups() = default;
  ~Groups() override { std::filesystem::remove_all(root); }
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;
  void put(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text;
  }
  [[nodiscard]] std::uint64_t left(const std::string& groups) const { return group_memory_left(groups, root.string()); }

  std::filesystem::path root =
      std::filesystem::temp_directory_path() / ("available_memory_test." + std::to_string(::getpid()));
};

TEST_F(Groups, LeaveTheLeastOfAllAbove) {
  put("a/memory.max", "1000\n");
  put("a/memory.current", "700\n");
  put("a/memory.stat", "anon 500\nfile 200\ninactive_file 150\n");
  put("a/b/memory.max", "max\n");
  put("a/b/memory.current", "100\n");
  EXPECT_EQ(left("0::/a/b\n"), 1000U - (700 - 150)) << "what is not used lately is given back";
  put("a/b/memory.max", "300\n");
  EXPECT_EQ(left("0::/a/b\n"), 200U);
  EXPECT_EQ(left("0::/\n"), UINT64_MAX) << "no limit at the top";
}

TEST_F(Groups, OfTheFirstVersionAreReadToo) {
  put("memory/x/memory.limit_in_bytes", "5000");
  put("memory/x/memory.usage_in_bytes", "4000");
  EXPECT_EQ(left("12:cpu:/x\n9:memory:/x\n"), 1000U);
  EXPECT_EQ(left("12:cpu:/x\n"), UINT64_MAX);
}

TEST_F(Groups, ThatUseMoreThanTheyMayLeaveNothing) {
  put("memory.max", "1000");
  put("memory.current", "1500");
  EXPECT_EQ(left("0::/"), 0U);
  EXPECT_EQ(left("damaged\n:\n0::"), 0U) << "and lines that make no sense are passed over";
}

TEST(AvailableMemory, IsSome) { EXPECT_GT(available_memory(), 0U); }

}  // namespace
}  // namespace plimsoll::os
