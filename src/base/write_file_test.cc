// base/write_file_test.cc: whole files or none.
#include "base/write_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <climits>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/directory_testing.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

class WriteFile : public testing::DirectoryTest {
 protected:
  static std::string content(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(WriteFile, MakesAFileForItsOwnerOnly) {
  ASSERT_TRUE(write_file(path("a"), "bytes").ok());
  EXPECT_EQ(content(path("a")), "bytes");
  EXPECT_EQ(fs::status(path("a")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(WriteFile, TakesNamesAsLongAsTheyMayBe) {
  for (const std::size_t size : {NAME_MAX - 7, NAME_MAX - 6, NAME_MAX}) {
    const std::string name(size, 'n');
    const Status written = write_file(path(name), "bytes");
    EXPECT_TRUE(written.ok()) << (written.ok() ? "" : written.error().message);
    EXPECT_EQ(content(path(name)), "bytes");
  }
}

TEST_F(WriteFile, ReplacesAFileAndLeavesNothingBeside) {
  std::ofstream(path("a")) << "old and longer";
  ASSERT_TRUE(write_file(path("a"), "new").ok());
  EXPECT_EQ(content(path("a")), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), fs::directory_iterator()), 1);
}

TEST_F(WriteFile, FollowsASymbolicLink) {
  fs::create_symlink(path("target"), path("link"));
  std::ofstream(path("target")) << "old";
  ASSERT_TRUE(write_file(path("link"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(content(path("target")), "new");
}

TEST_F(WriteFile, DoesNotReplaceADevice) {
  ASSERT_TRUE(write_file("/dev/null", "bytes").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(WriteFile, NamesThePathThatCannotBeWritten) {
  const Status missing = write_file(path("no/such/file"), "x");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message, "cannot write " + path("no/such/file") + ": No such file or directory");
  const Status directory = write_file(directory_.string(), "x");
  ASSERT_FALSE(directory.ok());
  EXPECT_EQ(directory.error().kind, ErrorKind::kUsage);
}

TEST_F(WriteFile, MakesWhatASymbolicLinkLeadsTo) {
  fs::create_symlink("target", path("near"));
  fs::create_symlink(path("near"), path("link"));
  ASSERT_TRUE(write_file(path("link"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(path("link")) && fs::is_symlink(path("near")));
  EXPECT_EQ(content(path("target")), "new");
}

TEST_F(WriteFile, LeavesACircleOfLinksAlone) {
  fs::create_symlink(path("b"), path("a"));
  fs::create_symlink(path("a"), path("b"));
  EXPECT_FALSE(write_file(path("a"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(path("a")) && fs::is_symlink(path("b")));
}

TEST_F(WriteFile, IsNotTheEndWhereFilesMayNotGrow) {
  // GIVEN a limit of the size of files, beyond which a write is the end of a process
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{1000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status written = write_file(path("large"), std::string(5000, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  // THEN it is an error, and nothing stays behind, no signal either
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.error().message.find("File too large"), std::string::npos) << written.error().message;
  EXPECT_TRUE(fs::is_empty(directory_));
  sigset_t pending;
  ASSERT_EQ(::sigpending(&pending), 0);
  EXPECT_EQ(::sigismember(&pending, SIGXFSZ), 0);
}

}  // namespace
}  // namespace plimsoll
