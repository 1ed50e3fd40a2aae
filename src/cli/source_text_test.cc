// cli/source_text_test.cc: where source lines come from.
#include "cli/source_text.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace plimsoll::cli {
namespace {

std::string temporary(std::string_view name) { return ::testing::TempDir() + std::string(name); }

void write_text(const std::string& path, std::string_view text) { std::ofstream(path) << text; }

TEST(SplitLines, EndsLinesAsPythonDoes) {
  EXPECT_EQ(split_lines("a\nb\r\nc\rd"), (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_EQ(split_lines("a\n\nb\n"), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_TRUE(split_lines("").empty());
}

TEST(SplitLines, ExpandsTabsAndHidesControlCharacters) {
  EXPECT_EQ(split_lines("\tx\ty\x1b"), (std::vector<std::string>{"    x   y␛"}));
}

TEST(SourceOf, PrefersTheTextThatTheProfileHolds) {
  // GIVEN a file that is in the profile and, with other text, on disk
  const std::string path = temporary("held.py");
  write_text(path, "on disk\n");
  profile::Profile profile;
  profile.sources.push_back({path, "as it ran\n"});
  // WHEN its source is wanted, THEN it is the profile's
  const SourceText source = source_of(profile, path);
  EXPECT_EQ(source.origin, SourceOrigin::kProfile);
  EXPECT_EQ(source.line(1), "as it ran");
  EXPECT_EQ(source.line(2), "");
  EXPECT_EQ(source.line(0), "");
}

TEST(SourceOf, TellsWhetherTheFileOnDiskIsTheOneThatRan) {
  const std::string path = temporary("disk.py");
  write_text(path, "x\n");
  profile::Profile profile;
  profile.start_realtime_ns = 4'000'000'000'000'000'000;  // in the year 2096
  EXPECT_EQ(source_of(profile, path).origin, SourceOrigin::kDisk);
  profile.start_realtime_ns = 1;
  EXPECT_EQ(source_of(profile, path).origin, SourceOrigin::kDiskChanged);
}

TEST(SourceOf, ReadsNothingButRegularFiles) {
  const std::string fifo = temporary("fifo.py");
  ::unlink(fifo.c_str());
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const profile::Profile profile;
  for (const std::string& path : {fifo, std::string("/dev/zero"), std::string("/"), std::string("/no/such.py")})
    EXPECT_EQ(source_of(profile, path).origin, SourceOrigin::kNone) << path;
}

}  // namespace
}  // namespace plimsoll::cli
