// base/new_file_test.cc: who reads a file that begins anew keeps what it had.
#include "base/new_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/file_bytes.h"

namespace plimsoll {
namespace {

class NewFile : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() /
                 ("new-file-" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(directory_), std::filesystem::directory_iterator());
  }
  static mode_t mode_of(const std::string& path) {
    struct stat facts {};
    return ::stat(path.c_str(), &facts) == 0 ? facts.st_mode & 0777U : 0;
  }

 private:
  std::filesystem::path directory_;
};

TEST_F(NewFile, LeavesItsReadersWhatTheyHad) {
  // GIVEN a file that somebody has opened
  std::ofstream(path("a")) << "what was there";
  const Result<RegularFile> reader = RegularFile::open(path("a"));
  ASSERT_TRUE(reader.ok());
  // WHEN it begins anew
  const Result<UniqueFd> anew = begin_new_file(path("a"));
  ASSERT_TRUE(anew.ok());
  ASSERT_EQ(::write(anew.value().get(), "new", 3), 3);
  // THEN who had opened it reads what was there, and who opens it now what is new, and nothing else has been left
  const Result<FileBytes> before = FileBytes::read(reader.value(), path("a"));
  ASSERT_TRUE(before.ok());
  EXPECT_EQ(before.value().view(), "what was there");
  EXPECT_EQ(FileBytes::read(path("a")).value().view(), "new");
  EXPECT_EQ(mode_of(path("a")), 0600U);
  EXPECT_EQ(files(), 1);
}

TEST_F(NewFile, IsTheSameFileWhereNothingWasInIt) {
  // GIVEN an empty file that somebody has made for its mode
  std::ofstream(path("a")).close();
  ASSERT_EQ(::chmod(path("a").c_str(), 0640), 0);
  // WHEN it begins anew THEN it is the same file
  ASSERT_TRUE(begin_new_file(path("a")).ok());
  EXPECT_EQ(mode_of(path("a")), 0640U);
}

TEST_F(NewFile, IsEmptiedWhereItsPlaceCannotBeTaken) {
  // GIVEN a file whose name leaves no room for that of another beside it
  const std::string longest = path(std::string(255, 'a'));
  std::ofstream(longest) << "what was there";
  // WHEN it begins anew THEN it is empty
  ASSERT_TRUE(begin_new_file(longest).ok());
  EXPECT_EQ(std::filesystem::file_size(longest), 0U);
  EXPECT_EQ(mode_of(longest), 0600U);
}

TEST_F(NewFile, IsNotSomebodyElsesWhoCouldReadIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a file somebody else's";
  constexpr uid_t kSomebody = 12345;
  // GIVEN files of somebody else's, one of which no other can take the place of
  const std::string replaced = path("a"), longest = path(std::string(255, 'a'));
  for (const std::string& name : {replaced, longest}) {
    std::ofstream(name).close();
    ASSERT_EQ(::chown(name.c_str(), kSomebody, kSomebody), 0);
  }
  // WHEN they begin anew THEN one is ours, and the other is left alone
  ASSERT_TRUE(begin_new_file(replaced).ok());
  struct stat facts {};
  ASSERT_EQ(::stat(replaced.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_uid, 0U);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  EXPECT_EQ(begin_new_file(longest).error().kind, ErrorKind::kPermission);
}

TEST_F(NewFile, IsNoDirectoryAndNotWhereALinkLeads) {
  std::ofstream(path("precious")) << "precious";
  std::filesystem::create_symlink(path("precious"), path("link"));
  EXPECT_EQ(begin_new_file(path("link")).error().kind, ErrorKind::kPermission);
  EXPECT_EQ(FileBytes::read(path("precious")).value().view(), "precious");
  EXPECT_FALSE(begin_new_file(path(".")).ok());
  EXPECT_FALSE(begin_new_file(path("no/such")).ok());
}

}  // namespace
}  // namespace plimsoll
