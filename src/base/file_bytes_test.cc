// base/file_bytes_test.cc: whatever is done to a file meanwhile is an error, not a crash.
#include "base/file_bytes.h"
#include "base/regular_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace plimsoll {
namespace {

constexpr std::size_t kSize = 100'000;

std::string file_of_size(const std::string& name, std::size_t size) {
  std::string path = testing::TempDir() + "file-bytes-" + name;
  std::ofstream(path, std::ios::binary) << std::string(size, 'a');
  return path;
}

TEST(FileBytes, AreAllThatIsInAFile) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kSize}) {
    const std::string path = file_of_size("whole", size);
    EXPECT_EQ(FileBytes::read(path).value().view(), std::string(size, 'a'));
    ::unlink(path.c_str());
  }
}

TEST(FileBytes, SayWhatCannotBeRead) {
  for (const std::string path : {"/no/such", "/dev/null", "/"}) {
    const Result<FileBytes> bytes = FileBytes::read(path);
    ASSERT_FALSE(bytes.ok());
    EXPECT_EQ(bytes.error().kind, ErrorKind::kBadInput);
    EXPECT_TRUE(bytes.error().message.starts_with("cannot read " + path)) << bytes.error().message;
  }
}

TEST(RegularFiles, AreOpenedAndOthersAreNotEvenTouched) {
  // GIVEN a file, a link to it, and a FIFO that nobody writes to, at which whoever opens it waits
  const std::string path = file_of_size("regular", 1), link = path + "-link", pipe = path + "-pipe";
  ASSERT_EQ(::symlink(path.c_str(), link.c_str()), 0);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(open_regular_file(path).is_open());
  EXPECT_TRUE(open_regular_file(link).is_open());
  EXPECT_FALSE(open_regular_file_nofollow(link).is_open());
  EXPECT_FALSE(open_regular_file(pipe).is_open());
  EXPECT_EQ(RegularFile::open(pipe).error().message, "cannot read " + pipe + ": not a regular file");
  for (const std::string& each : {path, link, pipe}) ::unlink(each.c_str());
}

TEST(FileBytes, OfAFileThatIsCutShortMeanwhileAreAnError) {
  for (const std::size_t left : {std::size_t{0}, kSize / 2}) {
    // GIVEN a file that has been opened
    const std::string path = file_of_size("cut", kSize);
    const Result<RegularFile> file = RegularFile::open(path);
    ASSERT_TRUE(file.ok());
    // WHEN somebody cuts it short before it is read
    ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(left)), 0);
    const Result<FileBytes> bytes = FileBytes::read(file.value(), path);
    // THEN that is told
    ASSERT_FALSE(bytes.ok());
    EXPECT_EQ(bytes.error().kind, ErrorKind::kBadInput);
    EXPECT_NE(bytes.error().message.find(path + ": it was cut short"), std::string::npos) << bytes.error().message;
    ::unlink(path.c_str());
  }
}

TEST(FileBytes, StayWhenTheFileIsCutShortLater) {
  // GIVEN what was read of a file WHEN somebody empties it THEN the bytes are those that were read
  const std::string path = file_of_size("later", kSize);
  const Result<FileBytes> bytes = FileBytes::read(path);
  ASSERT_EQ(::truncate(path.c_str(), 0), 0);
  EXPECT_EQ(bytes.value().view(), std::string(kSize, 'a'));
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace plimsoll
